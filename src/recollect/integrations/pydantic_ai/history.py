"""A history processor for Pydantic AI that applies our strategies."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from ...items import Item, Tokenizer, role_of, text_of
from ...sessions.in_memory import InMemorySession
from ...strategies.configuration import StrategyConfig
from ...strategies.session import StrategySession
from ...strategies.summarizers.protocol import Summarizer
from .parts import item_of

_PLACE = "part_of"  # the field of an item with the number of its message and of its part


def history_processor(
    strategy: StrategyConfig,
    *,
    summarizer: Summarizer | None = None,
    tokenizer: Tokenizer | None = None,
) -> Callable[[list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """A function for `ProcessHistory`, which shortens what the model sees by a strategy.

    Whole turns are cut, and a tool call stays with its result. A shortened message keeps its other parts. A
    strategy that summarizes does so once for each run, unless the history that is passed in is short enough.
    """

    async def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        session = InMemorySession("view")
        shown = StrategySession(session, strategy, summarizer=summarizer, tokenizer=tokenizer)
        await session.add_items(list(_items_of(messages)))
        return _messages_of(await shown.get_items(), messages)

    return process


def _items_of(messages: Sequence[ModelMessage]) -> Iterator[Item]:
    """One item for each part, with its place."""
    for number, message in enumerate(ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")):
        for place, part in enumerate(message["parts"] or [{}]):
            yield {**(item_of(part) or {"type": "record"}), _PLACE: [number, place]}


def _messages_of(items: Sequence[Item], before: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages of a view: those that stay whole are the same objects."""
    shown: list[ModelMessage] = []
    parts: dict[int, dict[int, Item]] = {}
    whole = {tuple(item[_PLACE]): item for item in _items_of(before)}
    for item in items:
        if _PLACE not in item:
            shown.append(_new_message(item))
            continue
        number, place = item[_PLACE]
        if number not in parts:
            shown.append(before[number])
            parts[number] = {}
        parts[number][place] = item
    numbers = {id(before[number]): number for number in parts}
    return [
        _with_parts(message, parts[numbers[id(message)]], whole, numbers[id(message)])
        if id(message) in numbers
        else message
        for message in shown
    ]


def _with_parts(
    message: ModelMessage, items: dict[int, Item], whole: dict[tuple[int, ...], Item], number: int
) -> ModelMessage:
    """A message with the parts that are left. A placeholder takes the place of a tool's output."""
    places = range(len(message.parts))
    if all(items.get(place) == whole[number, place] for place in places):
        return message
    parts = [_changed(message.parts[place], items[place], whole[number, place]) for place in items]
    shortened: ModelMessage = replace(message, parts=parts)  # type: ignore[arg-type] # of either kind
    return shortened


def _changed(part: Any, item: Item, before: Item) -> Any:
    return part if item == before else replace(part, content=text_of(item))


def _new_message(item: Item) -> ModelMessage:
    """A message that the strategy has added, such as a summary."""
    if role_of(item) == "assistant":
        return ModelResponse(parts=[TextPart(text_of(item))])
    return ModelRequest(parts=[UserPromptPart(text_of(item))])
