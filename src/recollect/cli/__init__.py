"""The command line: `recollect COMMAND`."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

from ..errors import RecollectError
from .arguments import NotFoundError, Parser, UsageError

if TYPE_CHECKING:
    import argparse

# Each command with its module and a short help text. The general help needs no command module.
COMMANDS = {
    "demo": ("demo", "run an agent that remembers, locally, without a key or a server"),
    "serve": ("services", "serve conversations, memories and chat over HTTP"),
    "worker": ("services", "learn from conversations that other processes recorded"),
    "mcp": ("services", "serve memory to MCP clients: remember, recall, forget, why, list, page"),
    "capture": ("capture", "let coding agents remember by themselves: install, pause, exclude, status"),
    "sessions": ("sessions", "list, show and delete sessions"),
    "memory": ("memory", "show what is known about users, with history and evidence"),
    "page": ("pages", "show what is known about a user on one page"),
    "remember": ("entries", "add an entry about a user"),
    "recall": ("entries", "show what an agent is given for a question, line by line"),
    "forget": ("entries", "delete an entry and all entries that it superseded, permanently"),
    "runs": ("runs", "list, show and retry the runs that learn from conversations"),
    "import": ("user_data", "import from other systems, or the export of a user"),
    "export": ("user_data", "export the data of a user, an agent or a tenant"),
    "erase": ("user_data", "erase all data about a user, permanently"),
    "copy": ("moving", "copy a database to another one, such as a file to PostgreSQL, and compare them"),
    "backup": ("maintenance", "copy the database to a file while it is in use, and verify the copy"),
    "restore": ("maintenance", "put a backup in the place of a SQLite database, and keep the old file aside"),
    "migrate": ("maintenance", "migrate the schema of a database server to the newest revision"),
    "keys": ("keys", "create, list and revoke API keys"),
    "doctor": ("doctor", "check configuration, database and models, and suggest fixes"),
    "repair": ("maintenance", "find and repair corrupt rows of long-term memory"),
    "bench": ("bench", "measure search quality and vector search speed (needs a source checkout)"),
    "completion": ("completion", "print a shell completion script"),
}
_EXAMPLES = """\
examples:
  recollect demo                                          try an agent that remembers
  recollect serve                                         start the service on this machine
  recollect remember "Ada lives in Lisbon" --user ada
  recollect recall "where does she live?" --user ada
  recollect doctor                                        check the installation

exit codes: 0 success, 1 error, 2 wrong usage, 3 not found
"""
_DONE, _ERROR, _USAGE, _NOT_FOUND = range(4)
_GARBAGE_THRESHOLD = 20_000  # new objects between two collections; Python has 700
_INTERRUPTED, _BROKEN_PIPE = 130, 141  # as shells report a process that a signal ended


def _tune_process() -> None:
    """Spend less on the start: nearly all that is imported stays, and our matrices are small."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0 is success, 1 an error, 2 wrong usage, 3 a named object that does not exist.
    """
    if arguments is None:
        _tune_process()
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:
        return _print_version()
    options = _parser(next((word for word in given if word in COMMANDS), "none")).parse_args(given)
    _escape_unencodable_output()
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _fail(error, _USAGE)
    except NotFoundError as error:
        return _fail(error, _NOT_FOUND)
    except BrokenPipeError:
        # Python flushes stdout again at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except OSError as error:
        return _fail(_describe_os_error(error), _ERROR)
    except (RecollectError, ValueError) as error:
        return _fail(error, _ERROR)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _print_version() -> int:
    from .doctor.checks import describe_versions

    print(describe_versions())
    return _DONE


def _escape_unencodable_output() -> None:
    """Print characters that the encoding lacks as escape codes instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(error: object, code: int) -> int:
    from .output import escape_control_characters

    print(f"recollect: {escape_control_characters(str(error))}", file=sys.stderr)
    return code


def _describe_os_error(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _parser(only: str | None = None) -> "argparse.ArgumentParser":
    """Build the parser of all commands. With `only`, load one command and add the others by name only."""
    parser = Parser(prog="recollect", description="The memory layer for AI agents.", epilog=_EXAMPLES)
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, words) in COMMANDS.items():
        if only in (None, name):
            loaded = import_module(f".{module}", __name__)
            getattr(loaded, f"add_{name}_parser")(commands)
        else:
            commands.add_parser(name, help=words)
    return parser
