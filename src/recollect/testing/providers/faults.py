"""Faults of a request, as wrappers around its handler. Several compose, outermost first."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .core import ApiError, Dialect, RecordedRequest, refusal

Fault: TypeAlias = Callable[[ASGIApp], ASGIApp]


@dataclass(frozen=True)
class Refuse:
    """An error response of the API, before the request takes effect or after (`done`)."""

    status: int = 500
    message: str = "This failure was requested by the test."
    code: str | None = None
    retry_after: float | None = None
    done: bool = False

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if self.done:
                await app(scope, receive, _ignore)
            headers = {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}
            error = ApiError(self.status, self.message, code=self.code, headers=headers)
            await refusal(scope, error)(scope, receive, send)

        return answer


@dataclass(frozen=True)
class TooLong:
    """The provider's error for a request that exceeds the context window."""

    tokens: int = 150_000
    limit: int = 128_000

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        return _refusing(lambda dialect: dialect.too_long(self.tokens, self.limit))


@dataclass(frozen=True)
class Filtered:
    """The provider's error for rejected content."""

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        return _refusing(lambda dialect: dialect.filtered())


@dataclass(frozen=True)
class WrongKey:
    """The provider's error for a revoked key."""

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        return _refusing(lambda dialect: dialect.wrong_key("revoked"))


@dataclass(frozen=True)
class Overloaded:
    """The provider's error for overload."""

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        return _refusing(lambda dialect: dialect.overloaded())


def _refusing(error: Callable[[Dialect], ApiError]) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await refusal(scope, error(scope["dialect"]))(scope, receive, send)

    return answer


@dataclass(frozen=True)
class Delay:
    """A delayed response."""

    seconds: float

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await asyncio.sleep(self.seconds)
            await app(scope, receive, send)

        return answer


@dataclass(frozen=True)
class Hold:
    """A response that waits until the test releases it."""

    until: threading.Event

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await _wait_for(self.until)
            await app(scope, receive, send)

        return answer


@dataclass(frozen=True)
class CloseBefore:
    """A connection that closes before the request takes effect."""

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, _send: Send) -> None:
            await _drop(scope, receive)

        return answer


@dataclass(frozen=True)
class CloseAfter:
    """A connection that closes after the request takes effect, before the response."""

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, _send: Send) -> None:
            await app(scope, receive, _ignore)
            await _drop(scope, receive)

        return answer


@dataclass(frozen=True)
class Truncate:
    """A response whose body and connection break off after some bytes."""

    after: int = 1

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            left = self.after

            async def cut(message: Message) -> None:
                nonlocal left
                if message["type"] == "http.response.start":
                    await send(message)
                elif left:
                    body = message.get("body", b"")[:left]
                    left -= len(body)
                    await send({"type": "http.response.body", "body": body, "more_body": True})

            await app(scope, receive, cut)
            await _drop(scope, receive)

        return answer


@dataclass(frozen=True)
class Stall:
    """A response that pauses after some bytes of its body, until the test releases it."""

    until: threading.Event
    after: int = 0

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            left = self.after

            async def stopping(message: Message) -> None:
                nonlocal left
                body = message.get("body", b"")
                if message["type"] == "http.response.body" and len(body) > left:
                    await send({"type": "http.response.body", "body": body[:left], "more_body": True})
                    await _wait_for(self.until)
                    message = {**message, "body": body[left:]}
                left = max(left - len(body), 0)
                await send(message)

            await app(scope, receive, stopping)

        return answer


@dataclass(frozen=True)
class Garble:
    """A response of status 200 with a wrong body. The request takes effect."""

    body: bytes = b"<html>garbage</html>"
    content_type: str = "application/json"

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await app(scope, receive, _ignore)
            await Response(self.body, media_type=self.content_type)(scope, receive, send)

        return answer


async def _wait_for(event: threading.Event) -> None:
    while not event.is_set():  # noqa: ASYNC110 - the event belongs to another thread
        await asyncio.sleep(0.005)


async def _ignore(_message: Message) -> None:
    """Send nothing."""


async def _drop(scope: Scope, receive: Receive) -> None:
    scope["drop"]()
    while (await receive())["type"] != "http.disconnect":
        pass


@dataclass
class _Rule:
    pattern: str
    faults: Sequence[Fault]
    times: int
    after: int


class FaultScript:
    """The requests that fail, and their faults."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(self, pattern: str, faults: Sequence[Fault], times: int, after: int) -> None:
        """Make matching requests fail a number of times, after a number of successes."""
        self._rules.append(_Rule(pattern, faults, times, after))

    def take(self, request: RecordedRequest) -> Sequence[Fault]:
        """Return the faults of a request: those of the first rule that applies."""
        for rule in self._rules:
            if not request.matches(rule.pattern) or rule.times == 0:
                continue
            if rule.after == 0:
                rule.times -= 1
                return rule.faults
            rule.after -= 1
        return ()

    def clear(self) -> None:
        """Remove all faults."""
        self._rules = []
