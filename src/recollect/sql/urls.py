"""Database URLs."""

import re

_SQLITE = "sqlite:///"
_DIALECTS = ("postgresql", "sqlite", "mysql", "mariadb")


def sqlite_path(url: str) -> str | None:
    """The path of a SQLite file, given as a URL or a path. `None` for the URL of another database."""
    if url.startswith(_SQLITE):
        return url.removeprefix(_SQLITE)
    return None if "://" in url else url


def is_in_memory(url: str) -> bool:
    """Whether a URL names a SQLite database in memory, which is private to the object that opens it."""
    scheme, _, rest = url.partition("://")
    by_driver = scheme.startswith("sqlite+") and rest.partition("?")[0] in ("", "/", "/:memory:")
    return by_driver or sqlite_path(url) == ":memory:"


def hide_credentials(url: str) -> str:
    """A URL without its credentials and its query, which may contain a password, too. A path stays."""
    if sqlite_path(url) is not None:
        return url
    return re.sub(r"//.*@", "//", url, flags=re.DOTALL).partition("?")[0]


def check_supported(dialect: str) -> None:
    """Raise `ValueError` if sessions do not support a database."""
    if dialect not in _DIALECTS:
        raise ValueError(f"sessions run on PostgreSQL, SQLite, MySQL and MariaDB, not on {dialect}")
