"""A mark beside a SQLite file that says that API keys were created for it.

The keys themselves are in the database. If the file vanishes or is replaced, the mark stays, and the service
does not become open to everybody. A database server needs no mark: nobody removes a database by mistake as
they remove a file, and the service does not start on one without tables.
"""

import logging
from pathlib import Path

from ...private_files import replace_privately
from ...sql.urls import is_in_memory, sqlite_path

logger = logging.getLogger(__name__)

_SUFFIX = ".keys"
_TEXT = (
    "API keys were created for the database beside this file, so the service requires them also if the\n"
    "database is missing or empty. To open the service to requests without a key, set access.require_keys.\n"
)


def mark_of(url_or_path: str | Path) -> Path | None:
    """The path of the mark; `None` for a database that is not a file."""
    url = str(url_or_path)
    path = sqlite_path(url)
    if path is None and url.startswith("sqlite+"):  # by a driver of SQLAlchemy
        path = url.partition("://")[2].partition("?")[0].removeprefix("/")
    if path is None or is_in_memory(url):
        return None
    resolved = Path(path).resolve()
    return resolved.with_name(f"{resolved.name}{_SUFFIX}")


def set_mark(mark: Path) -> None:
    """Write the mark. A folder that cannot be written is logged: the keys are valid without it."""
    try:
        with replace_privately(mark) as temporary:
            temporary.write_text(_TEXT, encoding="utf-8")
    except OSError as error:
        logger.warning("mark of API keys could not be written", extra={"error": type(error).__name__})
