"""Database URLs."""

import re

_SQLITE = "sqlite:///"
_SEVERAL = re.compile(r"([\w+]+://(?:[^@/?#]*@)?)([^@/?#]*,[^@/?#]*)(/[^?#]*)?(?:\?(.*))?", re.DOTALL)
WANTED_HOST = "target_session_attrs"
"""The option of a URL that says which of several hosts is wanted."""
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


def name_hosts(url: str) -> str:
    """The URL of several hosts with each as an argument; other URLs as they are.

    Unless the URL says otherwise, connections are made to the host that accepts writes.
    """
    found = _SEVERAL.fullmatch(url)
    if found is None:
        return url
    start, hosts, path, query = found.groups()
    named = [f"host={host}" for host in hosts.split(",")]
    if WANTED_HOST not in (query or ""):
        named.append(f"{WANTED_HOST}=read-write")
    return f"{start}{path or '/'}?{'&'.join([*named, *([query] if query else [])])}"


def split_host(host: str) -> tuple[str, int]:
    """The name and the port of a host."""
    name, _, port = host.rpartition(":") if re.search(r":\d+$", host) else (host, "", "")
    return name.strip("[]"), int(port or 5432)
