"""Database URLs."""

_SQLITE = "sqlite:///"
_DIALECTS = ("postgresql", "sqlite", "mysql", "mariadb")


def sqlite_path(url: str) -> str | None:
    """The path in the URL of a SQLite file, which may be a bare path; `None` if it is the URL of another."""
    if url.startswith(_SQLITE):
        return url.removeprefix(_SQLITE)
    return None if "://" in url else url


def is_in_memory(url: str) -> bool:
    """Whether a URL names a SQLite database in memory, which is private to whatever opens it."""
    scheme, _, rest = url.partition("://")
    by_driver = scheme.startswith("sqlite+") and rest.partition("?")[0] in ("", "/", "/:memory:")
    return by_driver or sqlite_path(url) == ":memory:"


def check_supported(dialect: str) -> None:
    """Raise a `ValueError` for a database that sessions do not run on."""
    if dialect not in _DIALECTS:
        raise ValueError(f"sessions run on PostgreSQL, SQLite, MySQL and MariaDB, not on {dialect}")
