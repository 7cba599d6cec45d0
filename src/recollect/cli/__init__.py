"""The command line: `recollect COMMAND`."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

from ..errors import RecollectError
from .arguments import NotThereError, Parser, UsageError

if TYPE_CHECKING:
    import argparse

# Every command with the module that adds it, and what it does in few words: the help of all is told without
# loading any of them.
COMMANDS = {
    "demo": ("demo", "an agent that remembers, on this machine, with no key and no server"),
    "serve": ("services", "serve conversations, memories and chat over HTTP"),
    "worker": ("services", "learn from conversations that other processes have recorded"),
    "mcp": ("services", "give memory to any MCP client: remember, recall, forget, why, list"),
    "sessions": ("sessions", "list, show and delete sessions"),
    "memory": ("memory", "show what is known about users, its history, and why it is known"),
    "remember": ("entries", "write down something about a user"),
    "recall": ("entries", "find what is known about a user, and what they said"),
    "forget": ("entries", "delete an entry for good, with all that it has superseded"),
    "runs": ("runs", "list, show and retry the runs that learn from conversations"),
    "import": ("user_data", "bring back an export of a user, or move in the sessions of the Agents SDK"),
    "export": ("user_data", "export everything about a user"),
    "erase": ("user_data", "erase everything about a user, for good"),
    "backup": ("maintenance", "copy the database to a file while others use it, and check the copy"),
    "migrate": ("maintenance", "bring a database server's schema to the newest revision"),
    "keys": ("keys", "make, list and revoke the keys of the service"),
    "doctor": ("doctor", "say what is configured, reachable and migrated, and how to mend what is not"),
    "repair": ("maintenance", "find the corrupt rows of long-term memory, and repair them"),
    "bench": ("bench", "measure search quality and vector search speed (needs a source checkout)"),
    "completion": ("completion", "print what a shell needs to complete commands and options"),
}
_EXAMPLES = """\
examples:
  recollect demo                                          an agent that remembers, in a minute
  recollect serve                                         the service, on this machine
  recollect remember "Ada lives in Lisbon" --user ada
  recollect recall "where does she live?" --user ada
  recollect doctor                                        what is configured, and what is wrong

exit codes: 0 done, 1 an error that is told, 2 wrong usage, 3 not found
"""
_DONE, _ERROR, _USAGE, _NOT_THERE = range(4)
_INTERRUPTED, _NOBODY_READS = 130, 141  # as shells tell of a process that a signal ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 for success, 1 for an error that is told, 2 for wrong usage,
    and 3 if what was named is not there."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser(next((word for word in given if word in COMMANDS), "none of them")).parse_args(given)
    _take_any_text()
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _told(error, _USAGE)
    except NotThereError as error:
        return _told(error, _NOT_THERE)
    except BrokenPipeError:
        # Python would try to write the rest once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NOBODY_READS
    except OSError as error:
        return _told(_words_of(error), _ERROR)
    except (RecollectError, ValueError) as error:
        return _told(error, _ERROR)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _take_any_text() -> None:
    """Have what an encoding cannot write written as its code, and not end in an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _told(error: object, code: int) -> int:
    from .output import visible

    print(f"recollect: {visible(str(error))}", file=sys.stderr)
    return code


def _words_of(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _parser(only: str | None = None) -> "argparse.ArgumentParser":
    """The parser of all commands; with `only`, of one, and of the others no more than their names."""
    parser = Parser(prog="recollect", description="The memory layer for AI agents.", epilog=_EXAMPLES)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, words) in COMMANDS.items():
        if only in (None, name):
            loaded = import_module(f".{module}", __name__)
            getattr(loaded, f"add_{name}_parser")(commands)
        else:
            commands.add_parser(name, help=words)
    return parser
