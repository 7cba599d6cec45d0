"""Scripted replies of a model. Each API renders them in its own format."""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...items import estimate_text_tokens
from .core import ApiError, RecordedRequest


@dataclass(frozen=True)
class ToolCall:
    """A tool call. Arguments given as text are sent unchanged, valid JSON or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    call_id: str | None = None
    """Created by the API if missing."""

    def arguments_text(self) -> str:
        """Return the arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else json_text(self.arguments)


@dataclass(frozen=True)
class Usage:
    """The token usage of a reply."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """A reply of a model: reasoning, then a text or a refusal, then tool calls."""

    text: str | None = None
    tool_calls: Sequence[ToolCall] = ()
    refusal: str | None = None
    reasoning: str | None = None
    stop: Literal["end", "length", "content_filter"] = "end"
    """The finish reason. A reply with tool calls finishes with them."""
    usage: Usage | None = None
    """`None` means an estimate."""
    error: ApiError | None = None
    """An error after everything was streamed. Without streaming, only the error is returned."""
    piece: int = 8
    """Characters per stream event."""

    @classmethod
    def json(cls, value: Any, **more: Any) -> "Reply":
        """Return a reply with JSON text, as for structured output."""
        return cls(json_text(value), **more)

    def pieces(self, text: str) -> Iterator[str]:
        """Split a text into stream chunks."""
        return (text[start : start + self.piece] for start in range(0, len(text), self.piece))

    def usage_for(self, request: Any) -> Usage:
        """Return the scripted usage, else an estimate from request and reply."""
        texts = [self.reasoning or "", self.text or self.refusal or ""]
        texts += [call.name + call.arguments_text() for call in self.tool_calls]
        return self.usage or Usage(tokens_in(request), sum(map(estimate_text_tokens, texts)))


Answer: TypeAlias = str | Reply | ToolCall | ApiError
Scripted: TypeAlias = Answer | Callable[[RecordedRequest], Answer]


class ReplyScript:
    """The queue of scripted replies. Tests write from one thread, the server reads from another."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._queue: deque[Scripted] = deque()
        self._default: Scripted | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, scripted: Sequence[Scripted]) -> None:
        """Queue replies."""
        with self._changing:
            self._queue.extend(scripted)

    def use_default(self, scripted: Scripted | None) -> None:
        """Set the reply for an empty queue."""
        self._default = scripted

    def clear(self) -> None:
        """Clear all replies."""
        with self._changing:
            self._queue.clear()
            self._default = None

    def take(self, request: RecordedRequest) -> Reply:
        """Return the reply to a request. Raise an `ApiError` if one is scripted, or if nothing is."""
        with self._changing:
            scripted = self._queue.popleft() if self._queue else self._default
        if scripted is None:
            target = f"{request.method} {request.path}"
            raise ApiError(400, f"No reply is scripted for {target}.", code="no_scripted_reply")
        return _as_reply(_computed(scripted, request) if callable(scripted) else scripted)


def _computed(scripted: Callable[[RecordedRequest], Answer], request: RecordedRequest) -> Answer:
    """Call a function of the test with the request. Its failure reaches the test through the client."""
    try:
        return scripted(request)
    except ApiError as error:
        return error
    except Exception as error:  # noqa: BLE001 - runs in the server's thread; the client gets the error
        return ApiError(400, f"The scripted reply failed: {error!r}", code="scripted_reply_failed")


def _as_reply(answer: Answer) -> Reply:
    if isinstance(answer, ApiError):
        raise answer
    if isinstance(answer, ToolCall):
        return Reply(tool_calls=[answer])
    return Reply(answer) if isinstance(answer, str) else answer


def tokens_in(request: Any) -> int:
    """Estimate the tokens of a part of a request."""
    return estimate_text_tokens(request if isinstance(request, str) else json_text(request))


def json_text(value: Any) -> str:
    """Serialize JSON as a model writes it."""
    return json.dumps(value, ensure_ascii=False)
