"""All sessions of a SQLite file."""

from functools import partial
from typing import Any

from ...sql.sqlite.connection import EngineOptions
from ...sql.sqlite.registry import acquire_engine, drop_engine, release_engine
from ..sql.catalog import SQLCatalog
from ..sql.tables import Tables
from .queries import queries_for


def open_catalog(path: str, tables: Tables, options: dict[str, Any]) -> SQLCatalog:
    """The catalog of a file, on the engine that sessions with these options share."""
    chosen = {name: options[name] for name in ("durability", "busy_timeout") if name in options}
    engine = acquire_engine(path, EngineOptions(**chosen))
    close, drop = partial(release_engine, engine), partial(drop_engine, engine)
    return SQLCatalog(engine, queries_for(tables), close, drop)
