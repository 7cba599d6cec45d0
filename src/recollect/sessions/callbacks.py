"""Ready-made input callbacks for `RunConfig(session_input_callback=…)`, and a way to chain them.

The Runner passes copies of the history and of the new input to a callback. It stores every returned item that
is not one of these objects. These callbacks therefore change the copies in place: a masked item stays the
same object, and nothing is stored twice.
"""

import inspect
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from ..items import Item, group_items, keep_whole_groups, role_of, text_of
from .protocol import Items, SessionInputCallback

logger = logging.getLogger(__name__)

Summarizer = Callable[[list[Item]], str | Awaitable[str]]

# Fields that are never masked: the structure of an item, and encoded data, which is not text.
_ENCODED = frozenset({"encrypted_content", "image_url", "file_data", "file_id", "data", "container_id"})
_STRUCTURE = _ENCODED | {"type", "role", "id", "call_id", "approval_request_id", "name", "status", "caller"}
_OF_PARTS = _ENCODED | {"type"}
_FIELDS_OF_PARTS = ("content", "output", "summary")


def limit_history(max_items: int) -> SessionInputCallback:
    """Show the model at most `max_items` items: the leading system messages and the newest items."""
    if max_items < 0:
        raise ValueError(f"max_items must not be negative: {max_items}")

    def callback(history: Items, new_items: Items) -> Items:
        return [*(history[n] for n in _indexes_to_keep(history, max_items)), *new_items]

    return callback


def _indexes_to_keep(history: Items, max_items: int) -> list[int]:
    """Return the indexes to keep without splitting a group: the preamble and the newest items that fit."""
    instructions = (role_of(item) in ("system", "developer") for item in history)
    preamble = next((n for n, is_one in enumerate(instructions) if not is_one), len(history))
    head = range(min(preamble, max_items))
    tail = range(max(len(history) - (max_items - len(head)), len(head)), len(history))
    kept = {id(item) for item in keep_whole_groups(history, {*head, *tail})}
    return [n for n, item in enumerate(history) if id(item) in kept]


def drop_sensitive(words: Iterable[str] = (), patterns: Iterable[str] = ()) -> SessionInputCallback:
    """Omit every item of the history that contains one of the words or matches one of the patterns.

    Items that belong to an omitted item are omitted too, such as the output of a call.
    """
    sensitive = _Matcher(words, patterns)

    def callback(history: Items, new_items: Items) -> Items:
        groups = group_items(history)
        dropped = {
            group for item, group in zip(history, groups, strict=True) if _is_sensitive(item, sensitive)
        }
        kept = [item for item, group in zip(history, groups, strict=True) if group not in dropped]
        return [*kept, *new_items]

    return callback


def _is_sensitive(item: Item, sensitive: "_Matcher") -> bool:
    """Whether masking would change the item, or a word is in a name, which is never masked."""
    return sensitive.is_in(text_of(item)) or _mask_item(item, sensitive, "\0") != item


def mask_sensitive(
    words: Iterable[str] = (), patterns: Iterable[str] = (), mask: str = "[redacted]"
) -> SessionInputCallback:
    """Mask the words and all matches of the patterns, in the history and in the new input."""
    sensitive = _Matcher(words, patterns)

    def callback(history: Items, new_items: Items) -> Items:
        for item in (*history, *new_items):
            item.update(_mask_item(item, sensitive, mask))
        return [*history, *new_items]

    return callback


class _Matcher:
    """Words and patterns, matched without regard to case."""

    def __init__(self, words: Iterable[str], patterns: Iterable[str]) -> None:
        if isinstance(words, str) or isinstance(patterns, str):
            raise ValueError("words and patterns must be lists, not one text")
        longest_first = sorted(filter(None, words), key=len, reverse=True)
        parts = [*map(re.escape, longest_first), *patterns]
        if not parts or not all(parts):
            raise ValueError("give at least one word or pattern, and no empty pattern")
        try:
            # Compiled one by one: a pattern may begin with flags, which apply to the whole expression.
            self._patterns = [re.compile(part, re.IGNORECASE) for part in parts]
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error

    def is_in(self, text: str) -> bool:
        return any(pattern.search(text) for pattern in self._patterns)

    def replaced(self, text: str, mask: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(lambda _: mask, text)
        return text


def _mask_item(item: Item, sensitive: _Matcher, mask: str) -> Item:
    """Return an item with its texts masked and its structure unchanged."""
    return {
        field: value
        if field in _STRUCTURE
        else _mask_value(value, sensitive, mask, _OF_PARTS if field in _FIELDS_OF_PARTS else frozenset())
        for field, value in item.items()
    }


def _mask_value(value: Any, sensitive: _Matcher, mask: str, kept: frozenset[str] = frozenset()) -> Any:
    """Return a value with all sensitive parts of its texts and keys masked, except in the fields `kept`."""
    if isinstance(value, dict):
        return {
            sensitive.replaced(key, mask): inner if key in kept else _mask_value(inner, sensitive, mask, kept)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_mask_value(inner, sensitive, mask, kept) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return mask if sensitive.is_in(str(value)) else value
    return _mask_text(value, sensitive, mask) if isinstance(value, str) else value


def _mask_text(text: str, sensitive: _Matcher, mask: str) -> str:
    """Return a text with its sensitive parts masked. JSON in the text stays valid JSON."""
    document = _json_inside(text)
    if document is None:
        return sensitive.replaced(text, mask)
    # JSON may contain a word in escaped form, so the decoded values are masked first.
    masked = _mask_value(document, sensitive, mask)
    if masked != document:
        return json.dumps(masked, ensure_ascii=False)
    # A pattern may match across JSON values: then the whole text is masked.
    return json.dumps(mask) if sensitive.is_in(text) else text


def _json_inside(text: str) -> Any:
    """Return the object or list that a text contains as JSON, as tool arguments do, else `None`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict | list) else None


def summarize_head(summarize: Summarizer, max_items: int) -> SessionInputCallback:
    """If the history has more than `max_items`, show a summary in place of all but the newest items.

    `summarize` gets the omitted items and returns a text, or an awaitable of a text.
    """
    if max_items < 1:
        raise ValueError(f"max_items must be at least 1, not {max_items}")

    async def callback(history: Items, new_items: Items) -> Items:
        if len(history) <= max_items:
            return [*history, *new_items]
        kept = set(_indexes_to_keep(history, max_items - 1))
        left_out = [item for n, item in enumerate(history) if n not in kept]
        text = await _summary_of(left_out, summarize)
        if text is None:
            return [*(history[n] for n in sorted(kept)), *new_items]
        place = _turn_into_summary(left_out[0], text)
        return [*_with_summary(history, kept, place), *new_items]

    return callback


async def _summary_of(items: list[Item], summarize: Summarizer) -> str | None:
    """Return the summary, or `None` if the summarizer fails: the run continues without it."""
    try:
        summary = summarize(items)
        return await summary if inspect.isawaitable(summary) else summary
    except Exception as error:  # noqa: BLE001 - a summarizer may fail in any way, and must not break a run
        logger.warning("summarizer failed (%s); history shown without a summary", type(error).__name__)
        return None


def _turn_into_summary(item: Item, text: str) -> Item:
    """Turn the item itself into the summary: a new object would be stored as new input."""
    item.clear()
    item.update(role="system", content=f"[Summary of the earlier conversation]\n{text}")
    return item


def _with_summary(history: Items, kept: set[int], summary: Item) -> Iterator[Item]:
    return (item for n, item in enumerate(history) if n in kept or item is summary)


def chain_callbacks(*callbacks: SessionInputCallback) -> SessionInputCallback:
    """Combine several callbacks. Each gets the result of the previous one.

    Each must return the new items last, as all callbacks of this module do.
    """

    async def callback(history: Items, new_items: Items) -> Items:
        for each in callbacks:
            combined = each(history, new_items)
            if inspect.isawaitable(combined):
                combined = await combined
            split = len(combined) - len(new_items)
            history, new_items = combined[:split], combined[split:]
        return [*history, *new_items]

    return callback
