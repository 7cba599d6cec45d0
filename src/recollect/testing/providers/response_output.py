"""Replies in the format of OpenAI's Responses API: output items and stream events."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from ...items import Item
from .conversation_items import make_id
from .replies import Reply, ToolCall

Event = dict[str, Any]


def output_items(reply: Reply, include: list[str]) -> list[Item]:
    """Return the items of a reply: reasoning, a message, calls."""
    items = [] if reply.reasoning is None else [_thought(reply.reasoning, include)]
    if reply.text is not None or reply.refusal is not None:
        items.append(_message(reply))
    return [*items, *map(_call, reply.tool_calls)]


def _thought(text: str, include: list[str]) -> Item:
    encrypted = {"encrypted_content": "gAAAAA"} if "reasoning.encrypted_content" in include else {}
    summary = [{"type": "summary_text", "text": text}]
    return {"id": make_id("rs"), "type": "reasoning", "summary": summary, **encrypted}


def _message(reply: Reply) -> Item:
    part: Item = {"type": "refusal", "refusal": reply.refusal}
    if reply.refusal is None:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": reply.text}
    status = "completed" if reply.stop == "end" else "incomplete"
    return {
        "id": make_id("msg"),
        "type": "message",
        "status": status,
        "content": [part],
        "role": "assistant",
    }


def _call(call: ToolCall) -> Item:
    return {
        "id": make_id("fc"),
        "type": "function_call",
        "status": "completed",
        "arguments": call.arguments_text(),
        "call_id": call.call_id or make_id("call"),
        "name": call.name,
    }


# --- events; the sender adds sequence numbers ---


def item_events(item: Item, index: int, reply: Reply) -> Iterator[Event]:
    """Yield the events of an item: added without text, deltas, done."""
    yield {"type": "response.output_item.added", "output_index": index, "item": _without_words(item)}
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        yield from _part_events(item["content"][0], place, reply)
    elif item["type"] == "reasoning":
        yield from _thought_events(item["summary"][0], place, reply)
    else:
        yield from _text_events("function_call_arguments", "arguments", item["arguments"], place, reply)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _without_words(item: Item) -> Item:
    bare = deepcopy(item)
    if item["type"] == "reasoning":
        return {**bare, "summary": []}
    words: Item = {"content": []} if item["type"] == "message" else {"arguments": ""}
    return {**bare, "status": "in_progress", **words}


def _part_events(part: Item, place: Event, reply: Reply) -> Iterator[Event]:
    place = {**place, "content_index": 0}
    field = "refusal" if part["type"] == "refusal" else "text"
    more: Event = {} if field == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", **place, "part": {**part, field: ""}}
    yield from _text_events(part["type"], field, part[field], {**place, **more}, reply)
    yield {"type": "response.content_part.done", **place, "part": part}


def _thought_events(part: Item, place: Event, reply: Reply) -> Iterator[Event]:
    place = {**place, "summary_index": 0}
    name = "reasoning_summary"
    yield {"type": f"response.{name}_part.added", **place, "part": {**part, "text": ""}}
    yield from _text_events(f"{name}_text", "text", part["text"], place, reply)
    yield {"type": f"response.{name}_part.done", **place, "part": part}


def _text_events(name: str, field: str, text: str, place: Event, reply: Reply) -> Iterator[Event]:
    """Yield a text as deltas, then complete."""
    for piece in reply.pieces(text):
        yield {"type": f"response.{name}.delta", **place, "delta": piece}
    yield {"type": f"response.{name}.done", **place, field: text}
