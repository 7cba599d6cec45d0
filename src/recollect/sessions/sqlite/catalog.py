"""All sessions of a SQLite file."""

from collections.abc import Callable
from functools import partial

from ..sql.catalog import SQLCatalog
from ..sql.tables import Tables
from .connection import EngineOptions
from .queries import queries_for
from .registry import acquire_engine, release_engine


def open_catalog(path: str, tables: Tables) -> SQLCatalog:
    """The catalog of a file, which it uses until it is closed."""
    engine = acquire_engine(path, EngineOptions())
    release: Callable[[], None] = partial(release_engine, engine)
    return SQLCatalog(engine, queries_for(tables), release)
