"""Serves the static files of the dashboard. They contain no data: the page calls the API with a key."""

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from ..error_handlers import problem_response
from ..problems import Problem

router = APIRouter(include_in_schema=False)

_PAGE = "index.html"
_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# No other origins, nothing inline, and no framing: stored contents cannot run as code.
_POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)
_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class _File:
    media_type: str
    tag: str
    plain: bytes
    gzipped: bytes


@router.api_route("/", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """The page of the dashboard."""
    return _file_response(request, _PAGE)


@router.api_route("/dashboard/{path:path}", methods=["GET", "HEAD"])
async def file(request: Request, path: str) -> Response:
    """A file of the dashboard."""
    return _file_response(request, path)


def _file_response(request: Request, path: str) -> Response:
    found = _files().get(path)
    if found is None:
        return problem_response(Problem("not_found", "The dashboard has no such file."))
    headers = {**_HEADERS, "ETag": found.tag}
    if found.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.gzipped, 200, {**headers, "Content-Encoding": "gzip"}, found.media_type)
    return Response(found.plain, 200, headers, found.media_type)


@cache
def _files() -> dict[str, _File]:
    """All files by path, in memory: a request cannot name any other file."""
    return {path: _read(entry) for path, entry in _walk(files(__package__) / "files", "")}


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        elif _extension(entry.name) in _MEDIA_TYPES:
            found.append((prefix + entry.name, entry))
    return found


def _read(entry: Traversable) -> _File:
    plain = entry.read_bytes()
    tag = f'"{sha256(plain).hexdigest()[:16]}"'
    return _File(_MEDIA_TYPES[_extension(entry.name)], tag, plain, gzip.compress(plain, mtime=0))


def _extension(name: str) -> str:
    return name.rpartition(".")[2]
