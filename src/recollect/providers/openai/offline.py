"""The offline agent: it quotes memory, so that chat works where no model is configured."""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple, TypeAlias

from agents import Model, ModelResponse, Usage
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types import responses
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage

from ...ids import new_hex
from ...integrations.openai_agents.run_texts import user_text
from ...memory.entry import Entry
from ...memory.hits import MemoryHit, Recalled, TurnHit
from ...memory.times import format_date

_MOST_ENTRIES = 5
_MOST_TURNS = 3
_LONGEST = 300  # characters of a quotation
# The scores of which a hit needs at least one: the vector score is relative to all entries, so the nearest
# entry has a high one even if it has nothing to do with the question.
_GROUNDS = ("text", "date", "phrase")
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_OTHER_CJK = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_ASKS_FOR_ALL = re.compile(
    r"\b(?:what|anything|everything|all)\b.{0,40}\b(?:know|remember|learn(?:ed|t)?)\b.{0,20}\b(?:me|myself|us)\b"
    r"|\bwho am i\b|(?:知道|记得|了解|记住).{0,8}我|我是谁",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Language:
    notice: str
    nothing: str
    no_question: str
    known: str
    said: str
    speakers: dict[str, str]
    is_chinese: bool = False

    def day(self, time: datetime) -> str:
        """A day in this language."""
        return f"{time.year}年{time.month}月{time.day}日" if self.is_chinese else format_date(time)

    def date(self, iso: str) -> str:
        """A day, a month or a year in this language."""
        if len(iso) == 10:
            return self.day(datetime.fromisoformat(iso))
        if self.is_chinese:
            return f"{iso[:4]}年" + (f"{int(iso[5:])}月" if len(iso) == 7 else "")
        return f"{date.fromisoformat(iso + '-01'):%B %Y}" if len(iso) == 7 else iso


_ENGLISH = _Language(
    notice="No model is configured here, so I cannot think or chat: I only quote what I remember.",
    nothing="I remember nothing about that.",
    no_question="Ask me about something that was said before.",
    known="What I know:",
    said="What was said:",
    speakers={"user": "you", "assistant": "assistant", "system": "system"},
)
_IN_CHINESE = _Language(
    notice="这里没有配置模型，我不会思考或聊天，只引用我记得的内容。",
    nothing="关于这个问题，我什么都不记得。",
    no_question="请问我一件以前说过的事。",
    known="我知道的：",
    said="说过的话：",
    speakers={"user": "你", "assistant": "助手", "system": "系统"},
    is_chinese=True,
)
_NOTICES = (_ENGLISH.notice, _IN_CHINESE.notice)


class Quoted(NamedTuple):
    """The hits that an answer quotes."""

    entries: list[MemoryHit]
    turns: list[TurnHit]


def quoted_in_answer(question: str, recalled: Recalled) -> Quoted:
    """The recalled hits that the answer to a question quotes."""
    asks_for_all = _ASKS_FOR_ALL.search(question) is not None
    known = [hit for hit in recalled.entries if asks_for_all or _is_grounded(hit)]
    said = [hit for hit in recalled.turns if _is_worth_quoting(hit, question)]
    return Quoted(known[:_MOST_ENTRIES], said[:_MOST_TURNS])


def answer_from(question: str, recalled: Recalled | None) -> str:
    """The answer to a question: a notice that no model answers, and the quotations, if there are any."""
    language = _language_of(question)
    if recalled is None:
        return f"{language.notice}\n\n{language.no_question}"
    quoted = quoted_in_answer(question, recalled)
    blocks = [language.notice]
    blocks += _block(language.known, [_known(hit.entry, language) for hit in quoted.entries])
    blocks += _block(language.said, [_said(hit, language) for hit in quoted.turns])
    return "\n\n".join(blocks if len(blocks) > 1 else [*blocks, language.nothing])


def _language_of(question: str) -> _Language:
    is_chinese = _CHINESE.search(question) is not None and _OTHER_CJK.search(question) is None
    return _IN_CHINESE if is_chinese else _ENGLISH


def _is_grounded(hit: MemoryHit | TurnHit) -> bool:
    return any(hit.parts.get(part, 0) > 0 for part in _GROUNDS)


def _is_worth_quoting(hit: TurnHit, question: str) -> bool:
    """Whether a hit is neither the question itself nor an earlier answer of the offline agent."""
    content = hit.message.content
    is_repetition = content.strip() == question.strip() or content.startswith(_NOTICES)
    return _is_grounded(hit) and not is_repetition


def _block(title: str, quotations: list[str]) -> list[str]:
    return ["\n".join([title, *quotations])] if quotations else []


def _known(entry: Entry, language: _Language) -> str:
    said = language.day(entry.said_at or entry.learned_at)
    when = said if entry.valid_from is None else language.date(entry.valid_from)
    return f"> {_on_one_line(entry.text)} ({when})"


def _said(hit: TurnHit, language: _Language) -> str:
    speaker = language.speakers[hit.message.role]
    return f'> {language.day(hit.message.created_at)}, {speaker}: "{_on_one_line(hit.message.content)}"'


def _on_one_line(text: str) -> str:
    """A text on one line, so that it cannot end its quotation."""
    line = " ".join(_UNFIT.sub(" ", text).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST].rstrip()} …"


Recall: TypeAlias = Callable[[str], Awaitable[Recalled]]

NAME = "offline"
"""The name in place of a model's name."""
_PIECE = 24  # characters in one event of a stream


class OfflineModel(Model):
    """Answers with quotations from memory, and says so. It needs no model and invents nothing.

    Each run has its own, with a `recall` that searches the memory of one user. It calls no tools, hands over
    to no other agent, and costs nothing.
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
        return ModelResponse(output=[message], usage=Usage(), response_id=_new_response_id())

    async def stream_response(
        self,
        system_instructions: str | None,  # noqa: ARG002
        input: Any,  # noqa: A002 - the name that the SDK calls it by
        *_: Any,
        **__: Any,
    ) -> AsyncIterator[Any]:
        """The answer in pieces, as events of the Responses API."""
        text = await self._answer(input)
        for event in answer_events(text):
            yield event

    async def _answer(self, given: Any) -> str:
        question = user_text(given)
        return answer_from(question, await self._recall(question) if question.strip() else None)


# --- the Responses API ---


def _new_response_id() -> str:
    return f"resp_{NAME}_{new_hex()}"


def _message(text: str) -> responses.ResponseOutputMessage:
    # By this id the SDK knows that the message has no id at a provider.
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
        id=_new_response_id(),
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


def answer_events(text: str) -> Iterator[Any]:
    """A text as the events of a response."""
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
