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
from .arguments import NotThereError, refuse
from .output import one_line

if TYPE_CHECKING:
    from ..memory.database.access import MemoryDatabase
    from ..memory.store import MemoryStore
    from ..server.settings import Settings

DEFAULT_FILE = "recollect.db"  # as that of the service and of `MemoryStore`, which takes longer to load
_DEFAULT_AGENT = "assistant"


def url_of(options: argparse.Namespace) -> str:
    """Where the database is: as the command says, as it is configured, or `recollect.db`."""
    return options.url or configured_url(options.config) or DEFAULT_FILE


def told_url(url: str) -> str:
    """A URL without its password, and without options, which may hold one too."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0] if "://" in url else url


def existing_url(options: argparse.Namespace) -> str:
    """Where the database is; a file that is not there is not made by a command that looks for something."""
    url = url_of(options)
    path = file_of(url)
    if path is not None and not path.exists():
        raise NotThereError(
            f"there is no database at {path}; name another by --url or RECOLLECT_URL, or make it with"
            " `recollect remember` or `recollect serve`"
        )
    return url


def file_of(url: str) -> Path | None:
    """The file of a SQLite database; `None` for a server."""
    from ..sql.urls import sqlite_path

    path = sqlite_path(url)
    if path == ":memory:":
        refuse("the database must be a file or a server: `:memory:` is gone when the command ends")
    return None if path is None else Path(path)


def open_store(options: argparse.Namespace, *, makes: bool = False, embeds: bool = False) -> "MemoryStore":
    """The store of a tenant, in which nothing is learned here. What `embeds` not searches by words alone."""
    from ..memory.store import MemoryStore

    url = url_of(options) if makes else existing_url(options)
    file_of(url)
    place: dict[str, Any] = {}
    embedder: Any = "local" if embeds else None
    if is_configured(options.config):
        settings = configured(options.config, {"RECOLLECT_DATABASE__URL": options.url})
        place = settings.database.options()
        if embeds:
            from ..memory.search.embedders import build_embedder

            embedder = build_embedder(settings.memory.embedder)
    return MemoryStore(url, workers=0, embedder=embedder, tenant=options.tenant, **place)


def open_memory_database(options: argparse.Namespace) -> "MemoryDatabase":
    """The tables of long-term memory, of all tenants."""
    from ..memory.database.access import MemoryDatabase

    place: dict[str, Any] = {}
    if is_configured(options.config):
        place = configured(options.config, {"RECOLLECT_DATABASE__URL": options.url}).database.options()
    return MemoryDatabase(existing_url(options), **place)


def owner_of(options: argparse.Namespace) -> tuple[str, str]:
    """The agent and the user that a command is about."""
    agent = os.environ.get("RECOLLECT_AGENT") or _DEFAULT_AGENT if options.agent is None else options.agent
    return agent, user_of(options)


def user_of(options: argparse.Namespace) -> str:
    """The user that a command is about."""
    user: str = os.environ.get("RECOLLECT_USER", "") if options.user is None else options.user
    if not user:
        refuse("say whose memory it is by --user, or by RECOLLECT_USER in the environment")
    return user


def confirm(options: argparse.Namespace, question: str) -> bool:
    """Whether a person agrees to what cannot be undone; who cannot be asked must have said so before."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        refuse("this cannot be undone: say --yes to do it without being asked")
    print(f"{one_line(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print("nothing was done", file=sys.stderr)
    return False


_FILE = "RECOLLECT_CONFIG"


def is_configured(path: Path | None) -> bool:
    """Whether there is a configuration besides `RECOLLECT_URL`, which needs nothing to be read."""
    return path is not None or any(name == _FILE or _is_setting(name) for name in os.environ)


def configured(path: Path | None, given: Mapping[str, str | None]) -> "Settings":
    """The settings of the file and the environment, with those in their place that a command was given.

    They are given by the names of their variables, such as `RECOLLECT_SERVER__PORT`.
    """
    require_extra("server", "pydantic", "a configuration")
    from ..server.settings import load_settings

    return load_settings(
        path, os.environ | {name: value for name, value in given.items() if value is not None}
    )


def configured_url(path: Path | None) -> str | None:
    """The URL of the database, as far as it was configured."""
    if is_configured(path):
        return configured(path, {}).database.url
    return os.environ.get("RECOLLECT_URL") or None


def _is_setting(name: str) -> bool:
    return name.startswith("RECOLLECT_") and "__" in name


_ALL = 1_000_000_000  # complaints: else the first hundred would hide what comes after them
_NULL = re.compile(r"NULL value in (\S+)\.(\S+)")


def damage_in(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with a database; empty if it is whole."""
    told = {str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_ALL})")}
    return sorted(line for line in told - {"ok"} if not _is_mistaken(connection, line))


def _is_mistaken(connection: sqlite3.Connection, line: str) -> bool:
    """SQLite 3.40 takes columns of tables without row ids for others, and sees NULL where there is none."""
    found = _NULL.fullmatch(line)
    if found is None:
        return False
    query = f'SELECT count(*) FROM "{found[1]}" WHERE "{found[2]}" IS NULL'
    return bool(connection.execute(query).fetchone() == (0,))
