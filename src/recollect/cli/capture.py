"""Hooks that let coding agents remember by themselves."""

import argparse
import getpass
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

from ..capture.settings import PAUSED, CaptureSettings, read_settings, write_settings
from ..capture.state import capture_home
from ..service_client import is_service_url
from .arguments import Commands, add_command, add_json_option, add_yes_option, path, raise_usage_error
from .database import confirm
from .hook_files import FILES, HookFile
from .mcp_clients.changes import Change, plan_install, plan_undo
from .output import escape_control_characters, plural, print_json

_WINDOWS = (
    "hooks need Unix sockets, which Python does not have on Windows: follow the transcripts instead, with"
    " `recollect import claude-code --follow`"
)
_TRUST = "Codex runs a hook only after you trusted it: start codex, enter /hooks, and trust these."
_RESTART = "Done. Sessions that are started from now on remember."


def add_capture_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    capture = add_command(
        commands,
        "capture",
        "let coding agents remember by themselves: install, pause, exclude, status",
        "  recollect capture install claude-code codex --dry-run\n"
        "  recollect capture install claude-code\n"
        "  recollect capture install claude-code --undo\n"
        "  recollect capture pause\n"
        "  recollect capture exclude ~/work/secret\n",
    )
    actions = capture.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_install(actions)
    pause = add_command(actions, "pause", "record nothing and recall nothing", "  recollect capture pause\n")
    pause.set_defaults(run=lambda _: _pause(True))
    resume = add_command(actions, "resume", "go on after a pause", "  recollect capture resume\n")
    resume.set_defaults(run=lambda _: _pause(False))
    exclude = add_command(
        actions,
        "exclude",
        "leave the projects in a folder alone",
        "  recollect capture exclude ~/work/secret\n  recollect capture exclude ~/work/secret --undo\n",
        _exclude,
    )
    exclude.add_argument("folder", type=path, metavar="DIR", help="a folder")
    exclude.add_argument("--undo", action="store_true", help="include it again")
    status = add_command(actions, "status", "show what is captured", "  recollect capture status\n")
    add_json_option(status)
    status.set_defaults(run=_status)


def _add_install(actions: Commands) -> None:
    install = add_command(
        actions,
        "install",
        "add hooks to coding agents",
        "  recollect capture install claude-code --dry-run     show what would be written\n"
        "  recollect capture install codex --scope project     for the project in this folder\n",
        _install,
    )
    install.add_argument("agents", nargs="+", choices=FILES, metavar="AGENT", help=", ".join(FILES))
    install.add_argument(
        "--scope", choices=["user", "project"], default="user", help="whose file to change (default: user)"
    )
    install.add_argument(
        "--folder", type=path, default=Path(), metavar="DIR", help="the project (default: this folder)"
    )
    install.add_argument("--user", help="the user (default: RECOLLECT_USER, else your login name)")
    install.add_argument("--url", help="the database (default: RECOLLECT_URL, else recollect.db at home)")
    install.add_argument("--dry-run", action="store_true", help="show the changes and write nothing")
    install.add_argument("--undo", action="store_true", help="take the hooks out again")
    add_yes_option(install)


def _install(options: argparse.Namespace) -> int:
    if sys.platform == "win32":
        raise_usage_error(_WINDOWS)
    settings = None if options.undo else _settings(options)
    changes = [(name, _plan(options, name)) for name in dict.fromkeys(options.agents)]
    for name, change in changes:
        _show(name, change)
    changed = [change for _, change in changes if not change.is_empty]
    if options.dry_run or not (changed or settings):
        return 0
    if changed and not confirm(options, "Write these changes?", "pass --yes to write these changes"):
        return 1
    for change in changed:
        change.check()  # all before the first is written
    if settings is not None:
        write_settings(capture_home(), settings)
        _stop_daemon()  # the next event starts one with these settings
    for change in changed:
        change.path.parent.mkdir(parents=True, exist_ok=True)
        change.apply()
    print("Done." if options.undo else _RESTART)
    if "codex" in options.agents and not options.undo:
        print(_TRUST)
    return 0


def _settings(options: argparse.Namespace) -> CaptureSettings:
    settings = read_settings(capture_home())
    given = options.url or os.environ.get("RECOLLECT_URL")
    if given and is_service_url(given):
        raise_usage_error("capture records into a database: --url must be a path or a database server")
    if given and "://" not in given:
        given = str(Path(given).expanduser().resolve())
    settings.url = given or settings.url or str(Path.home() / "recollect.db")
    settings.user = options.user or os.environ.get("RECOLLECT_USER") or settings.user or getpass.getuser()
    return settings


def _plan(options: argparse.Namespace, name: str) -> Change:
    file = FILES[name]
    variable = os.environ.get(file.variable) if file.variable else None
    place = file.path(variable, options.scope, options.folder.resolve())
    if options.undo:
        return plan_undo(place, file.format)
    return plan_install(place, file.format, _entry(name, file))


def _entry(name: str, file: HookFile) -> dict[str, dict[str, object]]:
    """Our hook at each event of an agent."""
    from ..capture import hook_client
    from ..capture.events import HOOKS

    words = [sys.executable, "-I", "-S", hook_client.__file__, name, str(capture_home())]
    command = f"{shlex.join(words)} || :"  # without Python, too, the agent goes on
    hook: dict[str, object] = {"type": "command", "command": command, "timeout": file.timeout}
    return dict.fromkeys(HOOKS[name].events, hook)


def _show(name: str, change: Change) -> None:
    nothing = "has no hooks of ours" if change.is_undo else "has the hooks already"
    print(f"{name}: {change.path}{f' {nothing}' if change.is_empty else ''}")
    for line in change.lines():
        print(f"  {escape_control_characters(line)}")


def _pause(is_paused: bool) -> int:
    home = capture_home()
    if is_paused:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / PAUSED).touch(mode=0o600)
    else:
        (home / PAUSED).unlink(missing_ok=True)
    print("paused: nothing is recorded or recalled" if is_paused else "capture goes on")
    return 0


def _exclude(options: argparse.Namespace) -> int:
    folder = str(options.folder.expanduser().resolve())
    settings = read_settings(capture_home())
    others = [each for each in settings.excluded if each != folder]
    settings.excluded = others if options.undo else [*others, folder]
    write_settings(capture_home(), settings)
    _stop_daemon()
    print(f"{folder} is {'included again' if options.undo else 'left alone'}")
    return 0


def _status(options: argparse.Namespace) -> int:
    home = capture_home()
    settings = read_settings(home)
    found: dict[str, Any] = {
        "folder": str(home),
        "is_paused": (home / PAUSED).exists(),
        "is_running": _daemon() is not None,
        "waiting": sum(each.is_file() for each in home.glob("spool/*")),
        "database": settings.url,
        "excluded": settings.excluded,
        "installed": {name: _is_installed(name) for name in FILES},
    }
    if options.json:
        print_json(found)
        return 0
    print(f"folder: {home}{' (paused)' if found['is_paused'] else ''}")
    running = "running" if found["is_running"] else "not running"
    print(f"daemon: {running}, {plural(found['waiting'], 'event')} waiting")
    print(f"database: {settings.url or 'not set: run recollect capture install'}")
    for folder in settings.excluded:
        print(f"left alone: {folder}")
    for name, is_installed in found["installed"].items():
        print(f"{name}: {'installed' if is_installed else 'not installed'} in {_user_file(name)}")
    return 0


def _user_file(name: str) -> Path:
    variable = FILES[name].variable
    return FILES[name].path(os.environ.get(variable) if variable else None, "user", Path())


def _is_installed(name: str) -> bool:
    place = _user_file(name)
    return place.is_file() and bool(FILES[name].format.entry_of(place.read_text("utf-8")))


def _daemon() -> int | None:
    """The process id of the daemon, if it holds its lock."""
    import fcntl

    try:
        with (capture_home() / "lock").open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int(file.read() or 0) or None
    except (FileNotFoundError, ValueError):
        return None
    return None


def _stop_daemon() -> None:
    if process_id := _daemon():
        os.kill(process_id, signal.SIGTERM)
