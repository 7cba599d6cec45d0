"""What a model is to answer, as a test scripts it: one vocabulary, which each API tells in its own format."""

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
    """A call of a tool; arguments that are a text are sent as they are, be they JSON or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    call_id: str | None = None
    """Made by the API if there is none."""

    def arguments_text(self) -> str:
        """The arguments as the model writes them."""
        return self.arguments if isinstance(self.arguments, str) else json_text(self.arguments)


@dataclass(frozen=True)
class Usage:
    """The tokens that an answer is said to have cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """An answer of a model: thoughts, then a text or a refusal, then calls of tools."""

    text: str | None = None
    tool_calls: Sequence[ToolCall] = ()
    refusal: str | None = None
    reasoning: str | None = None
    stop: Literal["end", "length", "content_filter"] = "end"
    """Why it ends; an answer that calls tools ends by that."""
    usage: Usage | None = None
    """`None`: an estimate."""
    error: ApiError | None = None
    """What goes wrong when all of this was streamed; one who does not stream gets the error alone."""
    piece: int = 8
    """How many characters come in an event of a stream."""

    @classmethod
    def json(cls, value: Any, **more: Any) -> "Reply":
        """A text that is JSON, as models give it that are asked for structured output."""
        return cls(json_text(value), **more)

    def pieces(self, text: str) -> Iterator[str]:
        """A text of the answer as a stream brings it."""
        return (text[start : start + self.piece] for start in range(0, len(text), self.piece))

    def usage_for(self, asked: Any) -> Usage:
        """The usage as scripted, else an estimate from what was asked and what is answered."""
        texts = [self.reasoning or "", self.text or self.refusal or ""]
        texts += [call.name + call.arguments_text() for call in self.tool_calls]
        return self.usage or Usage(tokens_in(asked), sum(map(estimate_text_tokens, texts)))


Answer: TypeAlias = str | Reply | ToolCall | ApiError
Scripted: TypeAlias = Answer | Callable[[RecordedRequest], Answer]


class ReplyScript:
    """The answers to come, in their order. Tests write from one thread, the server reads from another."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._queue: deque[Scripted] = deque()
        self._default: Scripted | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, scripted: Sequence[Scripted]) -> None:
        """Queue answers."""
        with self._changing:
            self._queue.extend(scripted)

    def use_default(self, scripted: Scripted | None) -> None:
        """Answer so whenever nothing is queued."""
        self._default = scripted

    def clear(self) -> None:
        """Forget all answers."""
        with self._changing:
            self._queue.clear()
            self._default = None

    def take(self, request: RecordedRequest) -> Reply:
        """The answer to a request; an `ApiError` where that is scripted, or where nothing is."""
        with self._changing:
            scripted = self._queue.popleft() if self._queue else self._default
        if scripted is None:
            asked = f"{request.method} {request.path}"
            raise ApiError(400, f"No reply is scripted for {asked}.", code="no_scripted_reply")
        return _as_reply(_computed(scripted, request) if callable(scripted) else scripted)


def _computed(scripted: Callable[[RecordedRequest], Answer], request: RecordedRequest) -> Answer:
    """What a function of the test makes of the request; its failure reaches the test through its client."""
    try:
        return scripted(request)
    except ApiError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the thread is the server's; whoever waits is told
        return ApiError(400, f"The scripted reply failed: {error!r}", code="scripted_reply_failed")


def _as_reply(answer: Answer) -> Reply:
    if isinstance(answer, ApiError):
        raise answer
    if isinstance(answer, ToolCall):
        return Reply(tool_calls=[answer])
    return Reply(answer) if isinstance(answer, str) else answer


def tokens_in(asked: Any) -> int:
    """About how many tokens a part of a request is."""
    return estimate_text_tokens(asked if isinstance(asked, str) else json_text(asked))


def json_text(value: Any) -> str:
    """JSON as a model writes it."""
    return json.dumps(value, ensure_ascii=False)
