"""Find and open the database that a command works on."""

import argparse
import os
import re
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..extras import require_extra
from ..sql.urls import hide_credentials as hide_credentials
from .arguments import NotFoundError, raise_usage_error
from .output import one_line

if TYPE_CHECKING:
    from ..memory.database.access import MemoryDatabase
    from ..memory.store import MemoryStore
    from ..server.settings import Settings

DEFAULT_FILE = "recollect.db"  # the default of the service and of `MemoryStore`; importing those is slow
_DEFAULT_AGENT = "assistant"


def resolve_url(options: argparse.Namespace) -> str:
    """Return the database URL: from the option, the configuration, or `recollect.db`."""
    return options.url or configured_url(options.config) or DEFAULT_FILE


def resolve_existing_url(options: argparse.Namespace) -> str:
    """Return the database URL. Raise `NotFoundError` for a missing file: reading commands create none."""
    url = resolve_url(options)
    path = sqlite_file(url)
    if path is not None and not path.exists():
        raise NotFoundError(
            f"no database at {path}: pass --url, set RECOLLECT_URL, or create it with"
            " `recollect remember` or `recollect serve`"
        )
    return url


def resolve_new_url(options: argparse.Namespace) -> str:
    """Return the database URL for a command that may create the file, but not its folder: that is a typo."""
    url = resolve_url(options)
    check_folder(url)
    return url


def check_folder(url: str) -> None:
    """Raise `NotFoundError` if a SQLite file would be in a folder that does not exist."""
    path = sqlite_file(url)
    if path is not None and not path.parent.exists():
        raise NotFoundError(f"no folder {path.parent}: create it, or pass another --url")


def sqlite_file(url: str) -> Path | None:
    """Return the path of a SQLite database, or `None` for a server."""
    from ..sql.urls import sqlite_path

    path = sqlite_path(url)
    if path == ":memory:":
        raise_usage_error("the database must be a file or a server: `:memory:` is lost when the command ends")
    return None if path is None else Path(path)


def open_store(options: argparse.Namespace, *, create: bool = False, embed: bool = False) -> "MemoryStore":
    """Open the store of a tenant, without workers, or the store in a service.

    With `create`, a missing file is created. Without `embed`, search uses words only. A service decides
    about both, and about the tenant, by the API key in `RECOLLECT_KEY`.
    """
    from ..memory.store import MemoryStore
    from ..service_client import is_service_url

    if is_service_url(resolve_url(options)):
        from ..memory.remote.store import RemoteMemoryStore

        return RemoteMemoryStore(resolve_url(options), key=os.environ.get("RECOLLECT_KEY") or None)
    url = resolve_new_url(options) if create else resolve_existing_url(options)
    place: dict[str, Any] = {}
    embedder: Any = "local" if embed else None
    if is_configured(options.config):
        settings = load_configuration(options.config, {"RECOLLECT_DATABASE__URL": options.url})
        place = settings.database.options()
        if embed:
            from ..memory.search.embedders import build_embedder

            embedder = build_embedder(settings.memory.embedder)
    return MemoryStore(url, workers=0, embedder=embedder, tenant=options.tenant, **place)


def open_memory_database(options: argparse.Namespace) -> "MemoryDatabase":
    """Open the tables of long-term memory, for all tenants."""
    from ..memory.database.access import MemoryDatabase

    place: dict[str, Any] = {}
    if is_configured(options.config):
        place = load_configuration(
            options.config, {"RECOLLECT_DATABASE__URL": options.url}
        ).database.options()
    return MemoryDatabase(resolve_existing_url(options), **place)


def resolve_owner(options: argparse.Namespace) -> tuple[str, str]:
    """Return the agent and the user from the options or the environment."""
    agent = os.environ.get("RECOLLECT_AGENT") or _DEFAULT_AGENT if options.agent is None else options.agent
    return agent, resolve_user(options)


def resolve_user(options: argparse.Namespace) -> str:
    """Return the user from the option or `RECOLLECT_USER`. Raise `UsageError` if neither is set."""
    user: str = os.environ.get("RECOLLECT_USER", "") if options.user is None else options.user
    if not user:
        raise_usage_error("no user given: pass --user or set RECOLLECT_USER")
    return user


def confirm(
    options: argparse.Namespace,
    question: str,
    without_terminal: str = "this cannot be undone: pass --yes to confirm",
) -> bool:
    """Ask for confirmation, as of an irreversible action. Without a terminal, `--yes` is required."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise_usage_error(without_terminal)
    print(f"{one_line(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print("cancelled; nothing changed", file=sys.stderr)
    return False


_FILE = "RECOLLECT_CONFIG"


def is_configured(path: Path | None) -> bool:
    """Whether a configuration exists. `RECOLLECT_URL` alone does not count: it needs no settings parser."""
    return path is not None or any(name == _FILE or _is_setting(name) for name in os.environ)


def load_configuration(path: Path | None, given: Mapping[str, str | None]) -> "Settings":
    """Load the settings from the file and the environment. `given` overrides both.

    Its keys are variable names, such as `RECOLLECT_SERVER__PORT`.
    """
    require_extra("server", "pydantic", "a configuration")
    from ..server.settings import load_settings

    return load_settings(
        path, os.environ | {name: value for name, value in given.items() if value is not None}
    )


def configured_url(path: Path | None) -> str | None:
    """Return the configured database URL, or `None`."""
    if is_configured(path):
        return load_configuration(path, {}).database.url
    return os.environ.get("RECOLLECT_URL") or None


def _is_setting(name: str) -> bool:
    return name.startswith("RECOLLECT_") and "__" in name


_ALL = 1_000_000_000  # reported errors; SQLite's default of 100 would hide the rest
_NULL = re.compile(r"NULL value in (\S+)\.(\S+)")


def find_damage(connection: sqlite3.Connection) -> list[str]:
    """Return the errors that SQLite reports for a database; empty if it is intact."""
    reported = {str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_ALL})")}
    return sorted(line for line in reported - {"ok"} if not _is_false_report(connection, line))


def _is_false_report(connection: sqlite3.Connection, line: str) -> bool:
    """Detect a bug of SQLite 3.40: it confuses columns of WITHOUT ROWID tables and reports false NULLs."""
    found = _NULL.fullmatch(line)
    if found is None:
        return False
    query = f'SELECT count(*) FROM "{found[1]}" WHERE "{found[2]}" IS NULL'
    return bool(connection.execute(query).fetchone() == (0,))
