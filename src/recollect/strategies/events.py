"""Events that report that a view was cut, and the callbacks that receive them."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..items import Item, Tokenizer, estimate_tokens
from .anchors import StoredSummary
from .cut import Trigger
from .placeholders import call_ids_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StrategyEvent:
    """A view was cut: its size before and after, and the turns that were summarized or compacted."""

    kind: Literal["summary", "compaction"]
    session_id: str
    trigger: Trigger
    turns_before: int
    """Turns that the model saw whole."""
    turns_after: int
    items_before: int
    items_after: int
    tokens_before: int
    tokens_after: int
    turns: range
    """The numbers of the turns that were summarized or compacted, from 1."""
    call_ids: tuple[str, ...]
    """The tool calls in these turns."""
    summary: StoredSummary | None = None
    """The new summary of a `summary` event."""


Callback: TypeAlias = Callable[[StrategyEvent], Awaitable[Any] | Any]


@dataclass(frozen=True)
class View:
    """The size of a view: the number of turns that it shows whole, and its items."""

    turns: int
    items: Sequence[Item]


def describe_change(
    kind: Literal["summary", "compaction"],
    session_id: str,
    before: View,
    after: View,
    *,
    trigger: Trigger,
    turns: range,
    changed: Sequence[Item],
    tokenizer: Tokenizer | None,
    summary: StoredSummary | None = None,
) -> StrategyEvent:
    """The event of a change from one view to another. `changed` are the summarized or compacted items."""
    return StrategyEvent(
        kind,
        session_id,
        trigger,
        before.turns,
        after.turns,
        len(before.items),
        len(after.items),
        estimate_tokens(before.items, tokenizer),
        estimate_tokens(after.items, tokenizer),
        turns,
        tuple(call_ids_of(changed)),
        summary,
    )


async def notify(callback: Callback, event: StrategyEvent) -> None:
    """Call a callback and await its result if that is awaitable. An error in it is logged, not raised."""
    try:
        outcome = callback(event)
        if inspect.isawaitable(outcome):
            await outcome
    except Exception as error:  # noqa: BLE001 - user code, whose errors must not end a run
        logger.warning("callback for a %s failed (%s)", event.kind, type(error).__name__)
