"""What the parts of messages of Pydantic AI mean, as items. Pure functions over their JSON."""

import json
from typing import Any

from ...items import Item

Part = dict[str, Any]


def item_of(part: Part) -> Item | None:
    """The item of a part; `None` if it says nothing to a person."""
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "user-prompt":
        return {"type": "message", "role": "user", "content": _prompt(content)}
    if kind == "system-prompt":
        return {"type": "message", "role": "system", "content": str(content)}
    if kind == "text":
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": content}]}
    if kind == "thinking":
        return {"type": "reasoning", "summary": [{"type": "summary_text", "text": content or ""}]}
    if kind == "tool-call":
        arguments = part["args"] if isinstance(part["args"], str) else json.dumps(part["args"])
        return _tool(part, "function_call", name=part["tool_name"], arguments=arguments)
    if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
        return _tool(part, "function_call_output", output=_output(content))
    return None


def _tool(part: Part, kind: str, **fields: Any) -> Item:
    return {"type": kind, "call_id": part["tool_call_id"], **fields}


def _prompt(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [_input(each) for each in content]


def _input(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if isinstance(part.get("content"), str):
        return {"type": "input_text", "text": part["content"]}
    return {"type": "input_image" if "image" in str(part.get("media_type")) else "input_file"}


def _output(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)
