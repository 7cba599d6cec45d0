"""Which pages a browser may let change something here: our own, and those of `server.cors_origins`.

A browser sends simple requests of any page without asking first. A request without a body is one of those,
and where the service runs without keys nothing else would stop it. Browsers say in `Sec-Fetch-Site` how a
page is related to us. Where that is missing, `Origin` says where the page comes from. Other clients send
neither.
"""

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from ..problems import Problem

_READING = {"GET", "HEAD", "OPTIONS"}
_OWN_SITES = {"same-origin", "none"}  # `none`: typed by the user, or sent by an extension


def check_origin(method: str, headers: Mapping[str, str], allowed: Collection[str], *, is_open: bool) -> None:
    """Raise a problem if a page of another origin wants to change something.

    Where the service `is_open`, without keys, a page of another port of this machine is foreign, too.
    """
    if method in _READING or not is_foreign(headers, is_open=is_open):
        return
    if "*" in allowed or headers.get("origin") in allowed:
        return
    detail = "a page of another origin may change nothing here, unless server.cors_origins names its origin"
    raise Problem("cross_origin_request", detail)


def is_foreign(headers: Mapping[str, str], *, is_open: bool) -> bool:
    """Whether a browser sent this for a page that is not ours."""
    site = headers.get("sec-fetch-site")
    if site in _OWN_SITES:
        return False
    if site is not None:
        return is_open or site != "same-site"
    origin = headers.get("origin")
    return origin is not None and _netloc(origin) != headers.get("host", "").strip().lower()


def _netloc(origin: str) -> str | None:
    """Host and port of an origin. The scheme does not count: a proxy in front may speak TLS for us."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
