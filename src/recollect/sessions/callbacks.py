"""Ready-made input callbacks for `RunConfig(session_input_callback=…)`, and a way to chain them.

The Runner hands a callback copies of the history and of the new input, and stores whatever comes back that
is neither. These callbacks therefore change the copies in place where they change an item: a masked item is
still the item it was, and nothing is stored twice.
"""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from ..items import Item, group_items, keep_whole_groups, text_of, turn_starts
from .protocol import Items, SessionInputCallback

Summarizer = Callable[[list[Item]], str | Awaitable[str]]

_MASKED_FIELDS = ("content", "arguments", "input", "output", "summary")


def limit_history(max_items: int) -> SessionInputCallback:
    """Show the model at most `max_items` of the history: what precedes the first turn, and the newest."""
    if max_items < 0:
        raise ValueError(f"max_items must not be negative, and it is {max_items}")

    def callback(history: Items, new_items: Items) -> Items:
        return [*(history[n] for n in _newest_kept(history, max_items)), *new_items]

    return callback


def _newest_kept(history: Items, max_items: int) -> list[int]:
    """The positions to keep so that no group is torn: the preamble, then as many of the newest as fit."""
    preamble = (turn_starts(history) or [len(history)])[0]
    head = range(min(preamble, max_items))
    tail = range(max(len(history) - (max_items - len(head)), len(head)), len(history))
    kept = {id(item) for item in keep_whole_groups(history, {*head, *tail})}
    return [n for n, item in enumerate(history) if id(item) in kept]


def drop_sensitive(words: Iterable[str] = (), patterns: Iterable[str] = ()) -> SessionInputCallback:
    """Leave out of the history every item that has one of the words or matches one of the patterns.

    What belongs to such an item, as an output to its call, is left out with it.
    """
    sensitive = _matcher(words, patterns)

    def callback(history: Items, new_items: Items) -> Items:
        groups = group_items(history)
        dropped = {
            group for item, group in zip(history, groups, strict=True) if sensitive.search(text_of(item))
        }
        kept = [item for item, group in zip(history, groups, strict=True) if group not in dropped]
        return [*kept, *new_items]

    return callback


def mask_sensitive(
    words: Iterable[str] = (), patterns: Iterable[str] = (), mask: str = "[redacted]"
) -> SessionInputCallback:
    """Replace the words, and what matches the patterns, in the history and in the new input."""
    sensitive = _matcher(words, patterns)

    def callback(history: Items, new_items: Items) -> Items:
        for item in (*history, *new_items):
            for field in _MASKED_FIELDS:
                if field in item:
                    item[field] = _masked(item[field], sensitive, mask)
        return [*history, *new_items]

    return callback


def _matcher(words: Iterable[str], patterns: Iterable[str]) -> re.Pattern[str]:
    parts = [*(re.escape(word) for word in words if word), *(f"(?:{pattern})" for pattern in patterns)]
    if not parts:
        raise ValueError("give at least one word or pattern")
    try:
        return re.compile("|".join(parts), re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


def _masked(value: Any, sensitive: re.Pattern[str], mask: str) -> Any:
    """A value with every sensitive stretch of its texts masked; JSON inside a text stays JSON."""
    if isinstance(value, dict):
        return {
            key: inner if key in ("type", "id") else _masked(inner, sensitive, mask)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_masked(inner, sensitive, mask) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return mask if sensitive.search(str(value)) else value
    if not isinstance(value, str) or not sensitive.search(value):
        return value
    document = _json_inside(value)
    if document is not None:
        return json.dumps(_masked(document, sensitive, mask), ensure_ascii=False)
    return sensitive.sub(lambda _: mask, value)


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
        summary = summarize(left_out)
        text = await summary if inspect.isawaitable(summary) else summary
        place = _turned_into_summary(left_out[0], text)
        return [*_with_summary(history, kept, place), *new_items]

    return callback


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
