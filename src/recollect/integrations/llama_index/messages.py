"""Chat messages of LlamaIndex as records, exactly, and as items. Pure functions."""

import json
from collections.abc import Iterator

from llama_index.core.llms import ChatMessage

from ...items import Item
from ...items.originals import Original
from ..framework import Framework

_ROLES = {
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "developer",
}


def record_of(message: ChatMessage) -> Original:
    """A message as JSON."""
    return message.model_dump(mode="json")


def message_of(record: Original) -> ChatMessage:
    """The message of a record."""
    return ChatMessage.model_validate(record)


def items_of(record: Original) -> list[Item]:
    """What a message means: its texts, its thoughts and its tool calls."""
    return list(_items_in(record))


def _items_in(record: Original) -> Iterator[Item]:
    blocks = record["blocks"]
    texts = [block["text"] for block in blocks if block["block_type"] == "text"]
    role = _ROLES.get(record["role"])
    if role is None:  # the output of a tool
        call_id = record["additional_kwargs"].get("tool_call_id")
        yield {"type": "function_call_output", "call_id": str(call_id), "output": "\n".join(texts)}
        return
    for block in blocks:
        if block["block_type"] == "thinking":
            yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": block["content"] or ""}]}
    if texts:
        kind = "output_text" if role == "assistant" else "input_text"
        yield {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}
    for block in blocks:
        if block["block_type"] == "tool_call":
            arguments = block["tool_kwargs"]
            yield {
                "type": "function_call",
                "call_id": str(block["tool_call_id"]),
                "name": block["tool_name"],
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            }


LLAMA_INDEX = Framework("llama-index", items_of)
