"""Ready-made input callbacks for `RunConfig(session_input_callback=…)`, and a way to chain them.

The Runner hands a callback copies of the history and of the new input, and stores whatever comes back that
is neither. These callbacks therefore change the copies in place where they change an item: a masked item is
still the item it was, and nothing is stored twice.
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

# What holds an item together, and what is encoded and means nothing as text: never masked.
_ENCODED = frozenset({"encrypted_content", "image_url", "file_data", "file_id", "data", "container_id"})
_STRUCTURE = _ENCODED | {"type", "role", "id", "call_id", "approval_request_id", "name", "status", "caller"}
_OF_PARTS = _ENCODED | {"type"}
_FIELDS_OF_PARTS = ("content", "output", "summary")


def limit_history(max_items: int) -> SessionInputCallback:
    """Show the model at most `max_items` of the history: what precedes the first turn, and the newest."""
    if max_items < 0:
        raise ValueError(f"max_items must not be negative, and it is {max_items}")

    def callback(history: Items, new_items: Items) -> Items:
        return [*(history[n] for n in _newest_kept(history, max_items)), *new_items]

    return callback


def _newest_kept(history: Items, max_items: int) -> list[int]:
    """The positions to keep so that no group is torn: the preamble, then as many of the newest as fit."""
    instructions = (role_of(item) in ("system", "developer") for item in history)
    preamble = next((n for n, is_one in enumerate(instructions) if not is_one), len(history))
    head = range(min(preamble, max_items))
    tail = range(max(len(history) - (max_items - len(head)), len(head)), len(history))
    kept = {id(item) for item in keep_whole_groups(history, {*head, *tail})}
    return [n for n, item in enumerate(history) if id(item) in kept]


def drop_sensitive(words: Iterable[str] = (), patterns: Iterable[str] = ()) -> SessionInputCallback:
    """Leave out of the history every item that has one of the words or matches one of the patterns.

    What belongs to such an item, as an output to its call, is left out with it.
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
    """Whether masking would change anything, or the word is in what masking leaves: the names in a call."""
    return sensitive.is_in(text_of(item)) or _masked_item(item, sensitive, "\0") != item


def mask_sensitive(
    words: Iterable[str] = (), patterns: Iterable[str] = (), mask: str = "[redacted]"
) -> SessionInputCallback:
    """Replace the words, and what matches the patterns, in the history and in the new input."""
    sensitive = _Matcher(words, patterns)

    def callback(history: Items, new_items: Items) -> Items:
        for item in (*history, *new_items):
            item.update(_masked_item(item, sensitive, mask))
        return [*history, *new_items]

    return callback


class _Matcher:
    """Words and patterns, whatever their case."""

    def __init__(self, words: Iterable[str], patterns: Iterable[str]) -> None:
        if isinstance(words, str) or isinstance(patterns, str):
            raise ValueError("give a list of words or patterns, not one text")
        longest_first = sorted(filter(None, words), key=len, reverse=True)
        parts = [*map(re.escape, longest_first), *patterns]
        if not parts or not all(parts):
            raise ValueError("give at least one word or pattern, and no empty pattern")
        try:
            # Each on its own: a pattern may begin with flags, which hold for all of it.
            self._patterns = [re.compile(part, re.IGNORECASE) for part in parts]
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error

    def is_in(self, text: str) -> bool:
        return any(pattern.search(text) for pattern in self._patterns)

    def replaced(self, text: str, mask: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(lambda _: mask, text)
        return text


def _masked_item(item: Item, sensitive: _Matcher, mask: str) -> Item:
    """An item with its texts masked, and what holds it together as it was."""
    return {
        field: value
        if field in _STRUCTURE
        else _masked(value, sensitive, mask, _OF_PARTS if field in _FIELDS_OF_PARTS else frozenset())
        for field, value in item.items()
    }


def _masked(value: Any, sensitive: _Matcher, mask: str, kept: frozenset[str] = frozenset()) -> Any:
    """A value with every sensitive stretch of its texts and names masked, but for the fields `kept`."""
    if isinstance(value, dict):
        return {
            sensitive.replaced(key, mask): inner if key in kept else _masked(inner, sensitive, mask, kept)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_masked(inner, sensitive, mask, kept) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return mask if sensitive.is_in(str(value)) else value
    return _masked_text(value, sensitive, mask) if isinstance(value, str) else value


def _masked_text(text: str, sensitive: _Matcher, mask: str) -> str:
    """A text without its sensitive stretches; JSON inside it stays JSON."""
    document = _json_inside(text)
    if document is None:
        return sensitive.replaced(text, mask)
    # JSON may hold a word in escapes, so it is looked into before the text is.
    masked = _masked(document, sensitive, mask)
    if masked != document:
        return json.dumps(masked, ensure_ascii=False)
    # A pattern may span what JSON keeps apart: then nothing of it can stay.
    return json.dumps(mask) if sensitive.is_in(text) else text


def _json_inside(text: str) -> Any:
    """The object or list that a text holds as JSON, as tool arguments do; else `None`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict | list) else None


def summarize_head(summarize: Summarizer, max_items: int) -> SessionInputCallback:
    """When the history has more than `max_items`, show a summary in place of all but the newest.

    `summarize` gets the items that are left out and returns a text, or an awaitable of one.
    """
    if max_items < 1:
        raise ValueError(f"max_items must be at least 1, and it is {max_items}")

    async def callback(history: Items, new_items: Items) -> Items:
        if len(history) <= max_items:
            return [*history, *new_items]
        kept = set(_newest_kept(history, max_items - 1))
        left_out = [item for n, item in enumerate(history) if n not in kept]
        text = await _summary_of(left_out, summarize)
        if text is None:
            return [*(history[n] for n in sorted(kept)), *new_items]
        place = _turned_into_summary(left_out[0], text)
        return [*_with_summary(history, kept, place), *new_items]

    return callback


async def _summary_of(items: list[Item], summarize: Summarizer) -> str | None:
    """The summary, or `None` if there is none to be had: a run goes on without it."""
    try:
        summary = summarize(items)
        return await summary if inspect.isawaitable(summary) else summary
    except Exception as error:  # noqa: BLE001 - a summarizer may fail in any way, and must not break a run
        logger.warning(
            "a summarizer failed (%s); the history is shown without a summary", type(error).__name__
        )
        return None


def _turned_into_summary(item: Item, text: str) -> Item:
    """The item itself, made into the summary: a fresh one would be stored as new input."""
    item.clear()
    item.update(role="system", content=f"[Summary of the earlier conversation]\n{text}")
    return item


def _with_summary(history: Items, kept: set[int], summary: Item) -> Iterator[Item]:
    return (item for n, item in enumerate(history) if n in kept or item is summary)


def chain_callbacks(*callbacks: SessionInputCallback) -> SessionInputCallback:
    """One callback out of several, each working on what the one before it made of the history.

    Each must return the new items last, as all of these do.
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
