"""What the entries of a transcript mean, as items. Pure functions."""

import json
from collections.abc import Iterator
from typing import Any

from ...items import Item
from ...items.originals import Original

_SAID = ("user", "assistant")
_UNSAID = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")


def items_of(record: Original) -> list[Item]:
    """The items of an entry. Only the main transcript is a conversation with the user."""
    entry = record["entry"]
    message = entry.get("message")
    if record.get("subpath") or entry.get("type") not in _SAID or not isinstance(message, dict):
        return []
    if any(entry.get(name) for name in _UNSAID):
        return []
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return list(items_in(entry["type"], blocks)) if isinstance(blocks, list) else []


def items_in(role: str, blocks: list[Any]) -> Iterator[Item]:
    """Texts are one message; calls, results and thoughts are items of their own."""
    known = [block for block in blocks if isinstance(block, dict)]
    kind = "input_text" if role == "user" else "output_text"
    for block in known:
        if block.get("type") == "thinking":
            yield {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": str(block.get("thinking"))}],
            }
    texts = [
        block["text"] for block in known if block.get("type") == "text" and isinstance(block["text"], str)
    ]
    if any(text.strip() for text in texts):
        yield {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}
    for block in known:
        if block.get("type") == "tool_use":
            arguments = json.dumps(block.get("input"))
            called = {"call_id": str(block.get("id")), "name": str(block.get("name"))}
            yield {"type": "function_call", **called, "arguments": arguments}
        elif block.get("type") == "tool_result":
            output = block.get("content")
            shown = output if isinstance(output, str) else json.dumps(output)
            yield {
                "type": "function_call_output",
                "call_id": str(block.get("tool_use_id")),
                "output": shown,
            }
