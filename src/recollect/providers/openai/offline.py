"""A model that is none: it quotes what is remembered, so that chat works where no model is configured."""

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeAlias

from agents import Model, ModelResponse, Usage
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types import responses
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage

from ...integrations.openai_agents.words import words_of_user
from ...memory.hits import Recalled
from .offline_answers import answer_from

Recall: TypeAlias = Callable[[str], Awaitable[Recalled]]

NAME = "offline"
"""What stands where a model's name is told."""
_PIECE = 24  # characters in one event of a stream


class OfflineModel(Model):
    """Answers from memory alone, and says so: no model is asked, and nothing is made up.

    It is made for one run with a `recall` that finds what one user's memory holds about a question. It calls
    no tools, hands over to nobody, and costs nothing.
    """

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    async def get_response(
        self,
        system_instructions: str | None,  # noqa: ARG002
        input: Any,  # noqa: A002 - the name that the SDK calls it by
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        """The whole answer."""
        message = _message(await self._answer(input))
        return ModelResponse(output=[message], usage=Usage(), response_id=_made_id())

    async def stream_response(
        self,
        system_instructions: str | None,  # noqa: ARG002
        input: Any,  # noqa: A002 - the name that the SDK calls it by
        *_: Any,
        **__: Any,
    ) -> AsyncIterator[Any]:
        """The answer, piece by piece, in the events of the Responses API."""
        text = await self._answer(input)
        for event in _events(text):
            yield event

    async def _answer(self, asked: Any) -> str:
        question = words_of_user(asked)
        return answer_from(question, await self._recall(question) if question.strip() else None)


# --- in the terms of the Responses API ---


def _made_id() -> str:
    return f"resp_{NAME}_{uuid.uuid4().hex}"


def _message(text: str) -> responses.ResponseOutputMessage:
    # The SDK knows by this id that no provider has the message under any.
    return responses.ResponseOutputMessage(
        id=FAKE_RESPONSES_ID, type="message", role="assistant", status="completed", content=[_part(text)]
    )


def _part(text: str) -> responses.ResponseOutputText:
    return responses.ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])


def _response(output: list[Any], status: Any) -> responses.Response:
    nothing = ResponseUsage(
        input_tokens=0,
        output_tokens=0,
        total_tokens=0,
        input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
    )
    return responses.Response(
        id=_made_id(),
        created_at=time.time(),
        model=NAME,
        object="response",
        status=status,
        output=output,
        parallel_tool_calls=False,
        tool_choice="none",
        tools=[],
        usage=nothing,
    )


def _events(text: str) -> Iterator[Any]:
    begun = _response([], "in_progress")
    whole = _message(text)
    events = [
        responses.ResponseCreatedEvent(type="response.created", response=begun, sequence_number=0),
        responses.ResponseInProgressEvent(type="response.in_progress", response=begun, sequence_number=0),
        responses.ResponseOutputItemAddedEvent(
            type="response.output_item.added",
            item=whole.model_copy(update={"status": "in_progress", "content": []}),
            output_index=0,
            sequence_number=0,
        ),
        *_text_events(text),
        responses.ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=whole, output_index=0, sequence_number=0
        ),
        responses.ResponseCompletedEvent(
            type="response.completed",
            response=begun.model_copy(update={"status": "completed", "output": [whole]}),
            sequence_number=0,
        ),
    ]
    for number, event in enumerate(events):
        yield event.model_copy(update={"sequence_number": number})


def _text_events(text: str) -> Iterator[Any]:
    place: dict[str, Any] = {
        "item_id": FAKE_RESPONSES_ID,
        "output_index": 0,
        "content_index": 0,
        "sequence_number": 0,
    }
    yield responses.ResponseContentPartAddedEvent(type="response.content_part.added", part=_part(""), **place)
    for start in range(0, len(text), _PIECE):
        yield responses.ResponseTextDeltaEvent(
            type="response.output_text.delta", delta=text[start : start + _PIECE], logprobs=[], **place
        )
    yield responses.ResponseTextDoneEvent(type="response.output_text.done", text=text, logprobs=[], **place)
    yield responses.ResponseContentPartDoneEvent(type="response.content_part.done", part=_part(text), **place)
