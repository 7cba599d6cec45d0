"""HTTP requests to a Recollect service: retries that are safe, and our own errors.

A request that changes nothing, or that carries an `Idempotency-Key`, is retried: after a lost connection, and
when the service says that it is busy. Any other request is retried only if it cannot have arrived. A write
that is cancelled ends first: the service might do it later, when the caller believes that it did not happen.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from .cancellation import finish_despite_cancellation
from .errors import (
    AccessDeniedError,
    ConflictError,
    ConnectionLostError,
    DiskFullError,
    ImportFormatError,
    InvalidTypeError,
    InvalidValueError,
    StorageError,
    TransientError,
    UnreachableError,
)
from .event_loops import PerLoop
from .extras import require_extra
from .ids import new_hex

if TYPE_CHECKING:
    import httpx2

ErrorT = TypeVar("ErrorT", bound=Exception)

_CONFLICT = {409, 412}
_BUSY = {408, 425, 429, 502, 503, 504}
_NOTHING_DONE = {  # or it is being done by an earlier attempt of the same request
    *("concurrency_limited", "idempotency_in_progress", "not_ready", "overloaded", "rate_limited"),
}
_FIRST_PAUSE = 0.1  # seconds
_LONGEST_PAUSE = 5.0
_SHORTEST_TIMEOUT = 0.001
_MOST_DETAIL = 500  # characters of an error text of the service
_KEEPALIVE = 30.0  # seconds; longer than between two turns of a chat, shorter than most proxies allow


def is_service_url(url: object) -> bool:
    """Whether a URL names a Recollect service, and not a database."""
    return isinstance(url, str) and url.lower().startswith(("http://", "https://"))


def join_path(*parts: str) -> str:
    """A path of the service. Each part is quoted, so an id may contain any character."""
    return "/".join(["/v1", *(quote(part, safe="") for part in parts)])


@dataclass(frozen=True)
class ServiceOptions:
    """How to reach a service."""

    url: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    """Seconds for a call, with its retries. A streamed response may take longer as long as data arrives."""
    retries: int = 3

    def __post_init__(self) -> None:
        parts = urlsplit(self.url) if is_service_url(self.url) else None
        if parts is None or not parts.hostname:
            raise InvalidValueError("url must be the address of a service, such as https://host")
        if parts.query or parts.fragment or parts.username or parts.password:
            raise InvalidValueError("url must not contain credentials, a query or a fragment; pass key=…")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable() and self.key.strip()):
            raise InvalidValueError("key must be an API key: visible ASCII characters")
        if not 0 < self.timeout < float("inf"):
            raise InvalidValueError(f"timeout must be a positive number of seconds, not {self.timeout}")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise InvalidValueError(f"retries must be a whole number from 0 on, not {self.retries!r}")


class NotFoundOnServiceError(ConflictError):
    """The service has no such object."""


class _Request(NamedTuple):
    method: str
    address: str
    content: bytes | None
    query: dict[str, str]
    headers: dict[str, str]


class _Failure(NamedTuple):
    error: Exception
    can_retry: bool
    pause: float = 0.0
    """Seconds that the service asks to wait."""


class ServiceClient:
    """Sends requests to one service. Connections belong to the event loop that opened them."""

    def __init__(self, options: ServiceOptions, owner: str) -> None:
        self._options = options
        self._http = require_extra("remote", "httpx2", owner)
        self._clients: PerLoop[httpx2.AsyncClient] = PerLoop(self._open, _close)

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._options.url

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON of a resource."""
        return await self._send("GET", path, query=query, is_safe=True)

    async def find(self, path: str, **query: Any) -> Any:
        """The JSON of a resource, or `None` if it does not exist."""
        try:
            return await self.get(path, **query)
        except NotFoundOnServiceError:
            return None

    async def read(self, path: str, body: Mapping[str, Any], **query: Any) -> Any:
        """The response to a POST that changes nothing, such as a search."""
        return await self._send("POST", path, body, query, is_safe=True)

    async def create(self, path: str, body: Mapping[str, Any], **query: Any) -> Any:
        """The response to a POST that creates something once, however often it is sent."""
        headers = {"Idempotency-Key": new_hex()}
        return await finish_despite_cancellation(self._send("POST", path, body, query, headers, is_safe=True))

    async def change(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        if_match: int | None = None,
        query: Mapping[str, Any] | None = None,
        is_repeatable: bool = False,
    ) -> Any:
        """The response to a request that changes something. Only a repeatable one is sent twice."""
        headers = {} if if_match is None else {"If-Match": f'"{if_match}"'}
        return await finish_despite_cancellation(
            self._send(method, path, body, query, headers, is_safe=is_repeatable)
        )

    async def send_items(self, path: str, body: Mapping[str, Any], items: Sequence[str]) -> Any:
        """The response to a POST of encoded items, which are sent as they are. It may be repeated."""
        fields = json.dumps({name: value for name, value in body.items() if value is not None})
        content = f'{fields[:-1]},"items":[{",".join(items)}]}}'.encode()
        return await finish_despite_cancellation(self._send("POST", path, content, is_safe=True))

    async def lines(self, path: str, **query: Any) -> AsyncIterator[dict[str, Any]]:
        """The objects of a JSON Lines response, as they arrive. It is requested again until it begins."""
        address, texts = self._address(path), _query(query)
        response = await self._repeat(lambda timeout: self._begin_stream(address, texts, timeout))
        try:
            async for line in _split_lines(response.aiter_bytes()):
                yield _parse(line)
        except self._http.HTTPError as error:
            raise ConnectionLostError("the connection to the service broke during a response") from error
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close the connections of this event loop; a later request opens new ones."""
        await self._clients.aclose()

    # --- requests ---

    def _open(self) -> "httpx2.AsyncClient":
        key = self._options.key
        client: httpx2.AsyncClient = self._http.AsyncClient(
            timeout=self._options.timeout,
            headers={
                "User-Agent": f"recollect/{version('recollect-memory')}",
                **({} if key is None else {"Authorization": f"Bearer {key}"}),
            },
            limits=self._http.Limits(keepalive_expiry=_KEEPALIVE),
            follow_redirects=False,  # a redirect would send the key to another address
        )
        return client

    def _address(self, path: str) -> str:
        return self._options.url.rstrip("/") + path

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        is_safe: bool,
    ) -> Any:
        """Send a request until it succeeds, may not be repeated, or the time is up."""
        content = body if body is None or isinstance(body, bytes) else _encode(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        request = _Request(
            method, self._address(path), content, _query(query or {}), {**kind, **(headers or {})}
        )
        return await self._repeat(lambda timeout: self._attempt(request, is_safe, timeout))

    async def _repeat(self, attempt: Callable[[float], Awaitable[Any]]) -> Any:
        """The first result that is no failure. An attempt gets the seconds that are left."""
        deadline, pauses = monotonic() + self._options.timeout, _pauses(self._options.retries)
        while True:
            result = await attempt(max(deadline - monotonic(), _SHORTEST_TIMEOUT))
            if not isinstance(result, _Failure):
                return result
            pause = max(next(pauses, float("inf")), result.pause)
            if not result.can_retry or monotonic() + pause >= deadline:
                raise result.error
            await asyncio.sleep(pause)

    async def _attempt(self, request: "_Request", is_safe: bool, timeout: float) -> Any:
        """The JSON of the response, or why there is none."""
        try:
            response = await self._clients.get().request(
                request.method,
                request.address,
                content=request.content,
                params=request.query,
                headers=request.headers,
                timeout=timeout,
            )
        except self._http.HTTPError as error:
            return self._without_answer(error, is_safe)
        if response.is_success:
            return _parse(response.content) if response.content else None
        return _failure_from(response, is_safe)

    async def _begin_stream(self, address: str, query: dict[str, str], timeout: float) -> Any:
        """A response whose body is still to be read, or why there is none."""
        client = self._clients.get()
        try:
            request = client.build_request("GET", address, params=query, timeout=timeout)
            response = await client.send(request, stream=True)
            if response.is_success:
                return response
            await response.aread()
        except self._http.HTTPError as error:
            return self._without_answer(error, is_safe=True)
        return _failure_from(response, is_safe=True)

    def _without_answer(self, error: Exception, is_safe: bool) -> _Failure:
        if isinstance(error, self._http.ConnectError):
            where = f"no connection to the service at {self._options.url}: {type(error).__name__}"
            return _Failure(_caused(UnreachableError(where), error), can_retry=True)
        lost = ConnectionLostError("the service did not answer; the outcome of the call is unknown")
        return _Failure(_caused(lost, error), can_retry=is_safe)


async def _close(client: "httpx2.AsyncClient") -> None:
    await client.aclose()


async def _split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a body that are not empty. Only a line feed ends one: texts may have other separators."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
    if rest:
        yield rest


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTypeError(f"the arguments cannot be sent as JSON: {error}") from error


def _query(given: Mapping[str, Any]) -> dict[str, str]:
    """Query parameters as texts, without those that are `None`."""
    texts = {name: value for name, value in given.items() if value is not None}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in texts.items()
    }


def _pauses(retries: int) -> Iterator[float]:
    return iter(
        [
            min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1)
            for attempt in range(retries)
        ]
    )


def _seconds(retry_after: str | None) -> float:
    try:
        return min(max(float(retry_after or 0), 0), _LONGEST_PAUSE)
    except ValueError:  # a date, which our service does not send
        return 0.0


# --- responses ---


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise StorageError("the response is not JSON: is this the address of a Recollect service?") from error


def _problem(content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except ValueError:
        return {}
    return document if isinstance(document, Mapping) else {}


def _failure_from(response: "httpx2.Response", is_safe: bool) -> _Failure:
    """A response that is no success. A busy service is asked again, and so is one that still works on it.

    A gateway may answer with 502 or 504 after the service has done the work, and so may the service if its
    database was lost meanwhile. This counts only if the request may be repeated.
    """
    status, code = response.status_code, _problem(response.content).get("code")
    can_retry = code in _NOTHING_DONE or (is_safe and status in _BUSY)
    return _Failure(
        _error_from(status, response.content), can_retry, _seconds(response.headers.get("Retry-After"))
    )


def _caused(error: ErrorT, cause: Exception) -> ErrorT:
    error.__cause__ = cause
    return error


def _error_from(status: int, content: bytes) -> Exception:
    """The error for a response: the one that a local store raises in the same case."""
    problem = _problem(content)
    code = problem.get("code")
    detail = str(problem.get("detail") or f"the service answered with status {status}")[:_MOST_DETAIL]
    if code is None:
        return StorageError(f"status {status} without a problem document: is this a Recollect service?")
    if status == 404:
        return NotFoundOnServiceError(detail)
    if status in _CONFLICT:
        return ConflictError(detail)
    if status in (401, 403):
        return AccessDeniedError(detail)
    if status in (400, 422):
        return ImportFormatError(detail) if code == "import_failed" else InvalidValueError(detail)
    if status == 413:
        return InvalidValueError(f"too large for the service: {detail}")
    if status == 507:
        return DiskFullError(detail)
    if code == "storage_unavailable":
        return ConnectionLostError(detail)
    return TransientError(detail) if status in _BUSY else StorageError(detail)
