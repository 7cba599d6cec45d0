"""All sessions of a database."""

from typing import Any

from ...sql.sqlalchemy.shared import acquire_shared, release_shared
from ..sql.catalog import SQLCatalog
from ..sql.tables import Tables
from .queries import queries_for


def open_catalog(url: str, tables: Tables, options: dict[str, Any]) -> SQLCatalog:
    """The catalog at a URL, on the engine that the sessions of that URL share."""
    shared = acquire_shared(url, options.get("engine_kwargs") or {}, options.get("create_tables", False))

    def release() -> None:
        release_shared(shared)

    return SQLCatalog(shared, queries_for(shared.url.get_backend_name(), tables), release, release)
