"""Protection against cross-site requests: only our own pages and `server.cors_origins` may change data.

Browsers send simple requests of any page without a preflight. A request without a body is such a request, and
nothing else would stop it if the service runs without keys. Browsers state the relation of a page to us in
`Sec-Fetch-Site`. If that is missing, `Origin` states where the page comes from. Other clients send neither.
"""

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from ..problems import Problem

_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_OWN_SITES = {"same-origin", "none"}  # `none`: entered by the user, or sent by an extension


def check_origin(method: str, headers: Mapping[str, str], allowed: Collection[str], *, is_open: bool) -> None:
    """Refuse a writing request from a page of another origin.

    If the service `is_open`, without keys, a page from another port of this machine counts as foreign, too.
    """
    if method in _SAFE_METHODS or not is_foreign(headers, is_open=is_open):
        return
    if "*" in allowed or headers.get("origin") in allowed:
        return
    detail = "Pages of another origin may not change data, unless server.cors_origins lists the origin."
    raise Problem("cross_origin_request", detail)


def is_foreign(headers: Mapping[str, str], *, is_open: bool) -> bool:
    """Whether a browser sent the request for a page of another site."""
    site = headers.get("sec-fetch-site")
    if site in _OWN_SITES:
        return False
    if site is not None:
        return is_open or site != "same-site"
    origin = headers.get("origin")
    return origin is not None and _netloc(origin) != headers.get("host", "").strip().lower()


def _netloc(origin: str) -> str | None:
    """Host and port of an origin. The scheme is ignored: a proxy in front may terminate TLS."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
