"""Messages of Strands as items. Pure functions over the JSON of a `SessionMessage`."""

import json
from collections.abc import Iterator
from typing import Any

from ...items import Item
from ...items.originals import Original
from ..framework import Framework

MESSAGE = "message"  # the field of a record of a message


def items_of(record: Original) -> list[Item]:
    """What a record means: texts, thoughts and tool calls. A redacted message means what replaces it."""
    if MESSAGE not in record:
        return []
    stored = record[MESSAGE]
    return list(_items_in(stored.get("redact_message") or stored["message"]))


def _items_in(message: dict[str, Any]) -> Iterator[Item]:
    role, blocks = message["role"], message["content"]
    for block in blocks:
        if thought := block.get("reasoningContent", {}).get("reasoningText"):
            yield {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": thought.get("text", "")}],
            }
    texts = [block["text"] for block in blocks if block.get("text")]
    if texts:
        kind = "output_text" if role == "assistant" else "input_text"
        yield {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}
    for block in blocks:
        if call := block.get("toolUse"):
            arguments = json.dumps(call["input"])
            yield {
                "type": "function_call",
                "call_id": call["toolUseId"],
                "name": call["name"],
                "arguments": arguments,
            }
        if result := block.get("toolResult"):
            output = json.dumps(result["content"], ensure_ascii=False)
            yield {"type": "function_call_output", "call_id": result["toolUseId"], "output": output}


STRANDS = Framework("strands", items_of)
