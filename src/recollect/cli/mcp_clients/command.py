"""`recollect mcp install` and its undo."""

import argparse
import getpass
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from ...errors import MissingExtraError
from ..arguments import Commands, Help, add_yes_option, path, raise_usage_error
from ..database import confirm
from ..output import escape_control_characters
from .changes import Change, plan_install, plan_undo
from .clients import CLIENTS, Client

_SERVICE = ("http://", "https://")
_EXAMPLES = """\
examples:
  recollect mcp install claude-code --dry-run       show what would be written
  recollect mcp install claude-code codex           for all your projects
  recollect mcp install cursor --scope project      for the project in this folder
  recollect mcp install claude-code codex --undo    take the entries out again
"""


def add_install_parser(actions: Commands) -> None:
    """Add the command to the parser."""
    install = actions.add_parser(
        "install",
        help="add memory to coding agents: Claude Code, Codex, Cursor, VS Code and others",
        description="Add an entry for `recollect mcp` to the configuration files of coding agents.",
        epilog=_EXAMPLES,
        formatter_class=Help,
    )
    install.add_argument("clients", nargs="+", choices=CLIENTS, metavar="CLIENT", help=", ".join(CLIENTS))
    install.add_argument(
        "--scope", choices=["user", "project"], default="user", help="whose file to change (default: user)"
    )
    install.add_argument(
        "--folder", type=path, default=Path(), metavar="DIR", help="the project (default: this folder)"
    )
    install.add_argument("--user", help="the user (default: RECOLLECT_USER, else your login name)")
    install.add_argument("--agent", help="the agent (default: RECOLLECT_AGENT, else assistant)")
    install.add_argument(
        "--url",
        help="the database (default: RECOLLECT_URL, else recollect.db in your home directory or the project)",
    )
    install.add_argument("--dry-run", action="store_true", help="show the changes and write nothing")
    install.add_argument("--undo", action="store_true", help="take the entries out again")
    add_yes_option(install)
    install.set_defaults(run=run_install)


def run_install(options: argparse.Namespace) -> int:
    """Show the changes, ask, and write them."""
    _check(options)
    changes = [(CLIENTS[name], _plan(options, CLIENTS[name])) for name in dict.fromkeys(options.clients)]
    for client, change in changes:
        _show(client, change)
    changed = [change for _, change in changes if not change.is_empty]
    if not changed or options.dry_run:
        return 0
    if not confirm(options, "Write these changes?", "pass --yes to write these changes"):
        return 1
    for change in changed:
        change.check()  # all before the first is written
    for change in changed:
        change.apply()
    print("Done. Restart the coding agent to use it." if not options.undo else "Done.")
    if not options.undo and (_url(options) or "").startswith(_SERVICE):
        print("The API key is not in these files: set RECOLLECT_KEY where the coding agent starts.")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse what would be written, but could not be started."""
    if options.scope == "project" and not options.folder.is_dir():
        raise_usage_error(f"--folder {options.folder} is no folder")
    alone = [name for name in options.clients if CLIENTS[name].project_file is None]
    if options.scope == "project" and alone:
        raise_usage_error(f"{alone[0]} has no file for a project: leave out --scope")
    for name in ("user", "agent", "url"):
        if getattr(options, name) == "":
            raise_usage_error(f"--{name} is empty: leave it out, or give a value")
    if not options.undo and find_spec("mcp") is None:
        raise MissingExtraError("recollect mcp", "mcp")


def _plan(options: argparse.Namespace, client: Client) -> Change:
    place = client.path(options.scope, options.folder.resolve())
    if options.undo:
        return plan_undo(place, client.format)
    return plan_install(place, client.format, client.entry(*_server(options)))


def _show(client: Client, change: Change) -> None:
    nothing = "has no entry" if change.is_undo else "has the entry already"
    print(f"{client.title}: {change.path}{f' {nothing}' if change.is_empty else ''}")
    for line in change.lines():
        print(f"  {escape_control_characters(line)}")


def _server(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The command and the arguments that start our server."""
    user = options.user or os.environ.get("RECOLLECT_USER") or getpass.getuser()
    agent = options.agent or os.environ.get("RECOLLECT_AGENT")
    given = {"--user": user, "--agent": agent, "--url": _url(options)}
    arguments = ["mcp"]
    for name, value in given.items():
        if value:  # one that begins with a dash would be read as an option
            arguments += [f"{name}={value}"] if value.startswith("-") else [name, value]
    if options.scope == "project":  # others have it at another place
        return "recollect", arguments
    found = shutil.which("recollect")
    return (found, arguments) if found else (sys.executable, ["-m", "recollect", *arguments])


def _url(options: argparse.Namespace) -> str | None:
    """The database. Agents start the server in any folder, so a file of the user has a whole path."""
    given: str | None = options.url or os.environ.get("RECOLLECT_URL") or None
    if given is None:
        return str(Path.home() / "recollect.db") if options.scope == "user" else None
    if "://" not in given:
        return str(Path(given).expanduser().resolve()) if options.scope == "user" else given
    if _has_secret(given):
        where = "set RECOLLECT_KEY" if given.startswith(_SERVICE) else "use ~/.pgpass"
        raise_usage_error(f"the URL has a password, which does not belong into these files: {where}")
    return given


def _has_secret(url: str) -> bool:
    parts = urlsplit(url)
    is_key = bool(parts.username) and url.startswith(_SERVICE)
    return bool(parts.password) or is_key or "password" in parse_qs(parts.query)
