"""Messages of the Microsoft Agent Framework as records, exactly, and as items. Pure functions."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agent_framework import Message

from ...items import Item
from ...items.originals import Original
from ..framework import Framework

_ROLES = ("user", "assistant", "system", "developer")


def record_of(message: Message) -> Original:
    """A message as JSON, as the framework writes it: without its raw representation."""
    return message.to_dict()


def message_of(record: Original) -> Message:
    """The message of a record."""
    return Message.from_dict(record)


def without_replay(stored: Sequence[Original], given: Sequence[Original]) -> list[Original]:
    """The given messages that are new. A caller may give the whole history again, or the end of it.

    A lone message of the user without an id that equals the last one is no replay: people repeat themselves.
    """
    known, new = [_identity(each) for each in stored], [_identity(each) for each in given]
    is_lone = bool(stored) and stored[-1]["role"] == "user" and stored[-1].get("message_id") is None
    for start in range(len(new) - len(known) + 1 if known else 0):
        if new[start : start + len(known)] == known:
            if start == 0 and len(known) == 1 and is_lone:
                break
            return list(given[start + len(known) :])
    for overlap in range(min(len(known), len(new)), 0, -1):
        if known[-overlap:] == new[:overlap] and not (overlap == 1 and is_lone):
            return list(given[overlap:])
    return list(given)


def _identity(record: Original) -> Any:
    """What makes a message the same one: its id, or else what it says."""
    if record.get("message_id") is not None:
        return record["message_id"]
    return record["role"], json.dumps(record["contents"], sort_keys=True)


def items_of(record: Original) -> list[Item]:
    """What a message means: its texts, thoughts, tool calls and their outputs."""
    return list(_items_in(record))


def _items_in(record: Original) -> Iterator[Item]:
    role, contents = record["role"], record["contents"]
    for content in contents:
        if content["type"] == "text_reasoning":
            summary = {"type": "summary_text", "text": content.get("text") or ""}
            yield {"type": "reasoning", "summary": [summary]}
    texts = [content["text"] for content in contents if content["type"] == "text" and content.get("text")]
    if texts and role in _ROLES:
        kind = "output_text" if role == "assistant" else "input_text"
        yield {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}
    for content in contents:
        if content["type"] == "function_call":
            arguments = content.get("arguments") or {}
            yield {
                "type": "function_call",
                "call_id": str(content.get("call_id")),
                "name": str(content.get("name")),
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            }
        if content["type"] == "function_result":
            result = content.get("result")
            text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            yield {"type": "function_call_output", "call_id": str(content.get("call_id")), "output": text}


AGENT_FRAMEWORK = Framework("agent-framework", items_of)
