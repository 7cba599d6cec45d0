"""What can go wrong with a request, as wrappers around what answers it. Several compose, outermost first."""

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
    """An error of the API itself; before anything was done, or after (`done`)."""

    status: int = 500
    message: str = "This failure was asked for."
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
    """A refusal for more tokens than the model takes, in the provider's words."""

    tokens: int = 150_000
    limit: int = 128_000

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        return _refusing(lambda dialect: dialect.too_long(self.tokens, self.limit))


@dataclass(frozen=True)
class Filtered:
    """A refusal for contents that the provider will not have, in its words."""

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        return _refusing(lambda dialect: dialect.filtered())


@dataclass(frozen=True)
class WrongKey:
    """A refusal of the key, right as it may be: it was just revoked."""

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        return _refusing(lambda dialect: dialect.wrong_key("revoked"))


@dataclass(frozen=True)
class Overloaded:
    """A refusal of everybody for now, in the provider's words."""

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        return _refusing(lambda dialect: dialect.overloaded())


def _refusing(error: Callable[[Dialect], ApiError]) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await refusal(scope, error(scope["dialect"]))(scope, receive, send)

    return answer


@dataclass(frozen=True)
class Delay:
    """An answer that takes its time."""

    seconds: float

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await asyncio.sleep(self.seconds)
            await app(scope, receive, send)

        return answer


@dataclass(frozen=True)
class Hold:
    """An answer that waits until the test lets it go."""

    until: threading.Event

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await _wait_for(self.until)
            await app(scope, receive, send)

        return answer


@dataclass(frozen=True)
class CloseBefore:
    """A connection that is closed before anything was done."""

    def __call__(self, _app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, _send: Send) -> None:
            await _drop(scope, receive)

        return answer


@dataclass(frozen=True)
class CloseAfter:
    """A connection that is closed when all was done, before the answer."""

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, _send: Send) -> None:
            await app(scope, receive, _ignore)
            await _drop(scope, receive)

        return answer


@dataclass(frozen=True)
class Truncate:
    """An answer whose body breaks off after some bytes, with the connection."""

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
    """An answer that stops after some bytes of its body, until the test lets it go on."""

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
    """An answer of status 200 with a body that is not what was asked for; all was done."""

    body: bytes = b"<html>garbage</html>"
    content_type: str = "application/json"

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await app(scope, receive, _ignore)
            await Response(self.body, media_type=self.content_type)(scope, receive, send)

        return answer


async def _wait_for(event: threading.Event) -> None:
    while not event.is_set():  # noqa: ASYNC110 - the event is of another thread
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
    """Which requests are to fail, and how."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(self, pattern: str, faults: Sequence[Fault], times: int, after: int) -> None:
        """Let matching requests fail, a number of times, after a number that do not."""
        self._rules.append(_Rule(pattern, faults, times, after))

    def take(self, request: RecordedRequest) -> Sequence[Fault]:
        """The faults in the way of a request: those of the first rule whose turn it is."""
        for rule in self._rules:
            if not request.matches(rule.pattern) or rule.times == 0:
                continue
            if rule.after == 0:
                rule.times -= 1
                return rule.faults
            rule.after -= 1
        return ()

    def clear(self) -> None:
        """Let nothing fail any more."""
        self._rules = []
