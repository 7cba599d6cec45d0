"""Passes a call on to the provider, and its answer back, byte by byte as it comes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import TypeAlias

import httpx2
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..error_handlers import problem_response
from ..problems import Problem
from ..telemetry.logs import current_request_id

logger = logging.getLogger(__name__)

RawHeaders: TypeAlias = list[tuple[bytes, bytes]]

MEMORY_HEADER = b"x-recollect-memory"
_REQUEST_ID = b"x-recollect-request-id"
_CONNECT_SECONDS = 10.0
_MOST_IDLE = 100  # connections
_IDLE_SECONDS = 3.0  # many servers close an idle connection after 5, also while the next call is on its way
_LONGEST_ANSWER = 8 * 1024 * 1024  # bytes that are kept to be recorded
# Headers of one connection, not of a message (RFC 9110, section 7.6.1).
_HOP_BY_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
    *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
}
# Made anew for the provider, meant for us, or of our site. Keys are among the given credentials.
_NOT_PASSED_ON = _HOP_BY_HOP | {
    *(b"host", b"content-length", b"content-encoding", b"expect", b"cookie"),
    *(b"authorization", b"x-api-key", b"api-key"),
}
# Of the provider's site, which ours is not; `date` is made anew.
_NOT_PASSED_BACK = _HOP_BY_HOP | {
    *(b"set-cookie", b"alt-svc", b"strict-transport-security", b"date", MEMORY_HEADER, _REQUEST_ID),
}
_OURS = (b"x-recollect-", b"recollect-")


def headers_to_pass_on(given: Iterable[tuple[bytes, bytes]], credentials: RawHeaders) -> RawHeaders:
    """The headers of a call for the provider."""
    given = list(given)
    dropped = _NOT_PASSED_ON | _named_by_connection(given)
    passed = [(name, value) for name, value in given if name not in dropped and not name.startswith(_OURS)]
    return [*passed, *credentials]


def headers_to_pass_back(given: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """The headers of an answer for the caller."""
    lower = [(name.lower(), value) for name, value in given]
    dropped = _NOT_PASSED_BACK | _named_by_connection(lower)
    return [(name, value) for name, value in lower if name not in dropped]


def _named_by_connection(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """The headers that `Connection` names: they belong to the connection, too."""
    values = (value for name, value in headers if name == b"connection")
    return {part.strip().lower() for value in values for part in value.split(b",")}


@dataclass(frozen=True)
class Ended:
    """What became of a call."""

    status: int | None = None
    """The status that the caller got; `None` if it hung up before."""
    encoding: str = ""
    content: bytes | None = field(default=None, repr=False)
    """The body of the answer, of which the end may be missing; `None` without one, or if it is too long."""


OnEnd: TypeAlias = Callable[[Ended], None]


@dataclass(frozen=True)
class Call:
    """A call for the provider."""

    method: str
    url: str
    headers: RawHeaders = field(repr=False)
    content: bytes = field(repr=False)


class Upstream:
    """The connections to the providers, shared by all calls. Answers leave no cookies behind."""

    def __init__(self, *, timeout_seconds: float, max_connections: int) -> None:
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(timeout_seconds, connect=_CONNECT_SECONDS, pool=_CONNECT_SECONDS),
            limits=httpx2.Limits(
                max_connections=max_connections,
                max_keepalive_connections=_MOST_IDLE,
                keepalive_expiry=_IDLE_SECONDS,
            ),
            follow_redirects=False,
        )
        self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))

    async def send(self, call: Call) -> httpx2.Response:
        """The answer, with its body still to be read. Raises a `Problem` if there is none."""
        content = call.content if call.method != "GET" else None
        options = {"timeout": self._client.timeout.as_dict()}
        try:
            request = httpx2.Request(
                call.method, call.url, headers=call.headers, content=content, extensions=options
            )
            return await self._client.send(request, stream=True)
        except httpx2.TimeoutException as error:
            raise _no_answer(error, "The model provider did not answer in time.") from error
        except (httpx2.LocalProtocolError, httpx2.InvalidURL) as error:
            detail = "The call has a header or a query that cannot be passed on."
            raise Problem("invalid_request", detail) from error
        except (httpx2.HTTPError, OSError) as error:
            raise _no_answer(
                error, "The model provider cannot be reached, or ended the connection."
            ) from error

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def _no_answer(error: Exception, detail: str) -> Problem:
    logger.warning("model provider gave no answer", extra={"error": type(error).__name__})
    return Problem("model_failed", detail)


class PassedOn(Response):
    """The answer of the provider. A caller that hangs up ends the call to the provider, too.

    If the provider breaks off, the connection to the caller is closed: a part must not look like the whole.
    """

    def __init__(self, upstream: Upstream, call: Call, state: str) -> None:
        super().__init__()
        self._upstream = upstream
        self._call = call
        self._state = state
        self._ended = Ended()
        self.on_end: OnEnd | None = None
        """Called once, whatever becomes of the call."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the answer on until it ends, or until the caller hangs up."""
        passing = asyncio.create_task(self._pass_on(scope, receive, send))
        leaving = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait([passing, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            # The answer may have ended together with the caller's connection.
            for task in (leaving, passing):
                task.cancel()
            await asyncio.wait([passing, leaving])
        if not passing.cancelled():
            passing.result()

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._call_provider(scope, receive, send)
        finally:
            if self.on_end is not None:
                self.on_end(self._ended)

    async def _call_provider(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._upstream.send(self._call)
        except Problem as problem:
            self._ended = Ended(problem.status)
            problem.headers[MEMORY_HEADER.decode()] = self._state
            await problem_response(problem)(scope, receive, send)
            return
        try:
            await self._pass_back(response, send)
        finally:
            await response.aclose()

    async def _pass_back(self, response: httpx2.Response, send: Send) -> None:
        headers = [*headers_to_pass_back(response.headers.raw), (MEMORY_HEADER, self._state.encode())]
        headers.append((_REQUEST_ID, (current_request_id() or "").encode()))
        start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
        await send(start)
        kept = _KeptBody()
        try:
            await self._pass_body(response, send, kept)
        finally:
            # A caller may hang up after the last event, before the connection ends: the answer is complete.
            encoding = response.headers.get("content-encoding", "")
            content = None if kept.is_too_long else b"".join(kept.chunks)
            self._ended = Ended(response.status_code, encoding, content)

    async def _pass_body(self, response: httpx2.Response, send: Send, kept: "_KeptBody") -> None:
        async for chunk in _chunks(response):
            if chunk is None:
                return  # without the end of the body, the server closes the connection
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if self.on_end is not None:
                kept.add(chunk)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _KeptBody:
    """The chunks of an answer, unless they are too long."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self._size = 0

    @property
    def is_too_long(self) -> bool:
        return self._size > _LONGEST_ANSWER

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self.is_too_long:
            self.chunks.clear()
        else:
            self.chunks.append(chunk)


async def _chunks(response: httpx2.Response) -> AsyncIterator[bytes | None]:
    """The parts of a body as they arrive, and `None` at the end if the provider broke off."""
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except (httpx2.HTTPError, OSError) as error:
        logger.warning("model provider broke off its answer", extra={"error": type(error).__name__})
        yield None


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
