"""Items of OpenAI's Conversations API: validation, ids, statuses and content parts."""

import secrets
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ...items import Item
from .core import ApiError


@dataclass(frozen=True)
class Shape:
    """The fields of an item type."""

    prefix: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] | None = None  # `None` allows any field
    has_status: bool = True


_HOSTED = ("id",)  # items created by the provider are identified by id

SHAPES = {
    "message": Shape("msg", ("role", "content"), ("type", "id", "status", "phase")),
    "function_call": Shape(
        "fc", ("call_id", "name", "arguments"), ("type", "id", "status", "namespace", "caller")
    ),
    "function_call_output": Shape("fco", ("call_id", "output"), ("type", "id", "status", "name", "caller")),
    "reasoning": Shape(
        "rs", ("summary",), ("type", "id", "status", "content", "encrypted_content"), has_status=False
    ),
    "web_search_call": Shape("ws", _HOSTED),
    "file_search_call": Shape("fs", _HOSTED),
    "computer_call": Shape("cu", _HOSTED),
    "computer_call_output": Shape("cuo", ("call_id", "output")),
    "code_interpreter_call": Shape("ci", _HOSTED),
    "image_generation_call": Shape("ig", _HOSTED),
    "local_shell_call": Shape("lsh", _HOSTED),
    "local_shell_call_output": Shape("lsho", _HOSTED),
    "mcp_list_tools": Shape("mcpl", _HOSTED, has_status=False),
    "mcp_approval_request": Shape("mcpr", _HOSTED, has_status=False),
    "mcp_approval_response": Shape("mcpa", ("approval_request_id", "approve"), has_status=False),
    "mcp_call": Shape("mcp", _HOSTED, has_status=False),
    "custom_tool_call": Shape("ctc", ("call_id", "name", "input"), has_status=False),
    "custom_tool_call_output": Shape("ctco", ("call_id", "output"), has_status=False),
    "compaction": Shape("cmp", ("encrypted_content",), has_status=False),
}

_ROLES = ("user", "assistant", "system", "developer")
_PARTS = {
    "assistant": ("output_text", "refusal"),
    "other": ("input_text", "input_image", "input_file"),
}


def make_id(prefix: str) -> str:
    """Return an id in the format of the API."""
    return f"{prefix}_{secrets.token_hex(24)}"


def stored_form(item: Any, where: str) -> Item:
    """Return the item as the API stores it. Raise an `ApiError` that names an invalid parameter."""
    if not isinstance(item, dict):
        raise _invalid(where, "expected an object", "invalid_type")
    kind = item.get("type", "message")
    shape = SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        supported = ", ".join(f"'{name}'" for name in SHAPES)
        raise ApiError(
            400, f"Invalid value: '{kind}'. Supported values are: {supported}.", where, "invalid_value"
        )
    _check_fields(item, shape, where)
    stored = {"id": item.get("id") or make_id(shape.prefix), "type": kind, **deepcopy(item)}
    if shape.has_status:
        stored["status"] = item.get("status") or "completed"
    if kind == "message":
        stored["content"] = _parts(item, where)
    return stored


def _check_fields(item: Item, shape: Shape, where: str) -> None:
    missing = [name for name in shape.required if name not in item]
    if shape.prefix == "rs" and not item.get("id") and not item.get("encrypted_content"):
        missing.append("id")
    if missing:
        name = f"{where}.{missing[0]}"
        raise ApiError(400, f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    known = None if shape.optional is None else {*shape.required, *shape.optional}
    unknown = [] if known is None else [name for name in item if name not in known]
    if unknown:
        name = f"{where}.{unknown[0]}"
        raise ApiError(400, f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    given = item.get("id")
    if given is not None and not str(given).startswith(f"{shape.prefix}_"):
        raise _invalid(f"{where}.id", f"expected an ID that begins with '{shape.prefix}'", "invalid_value")


def _parts(item: Item, where: str) -> list[Item]:
    """Return the content as a list of parts, with the fields that the API adds."""
    if item["role"] not in _ROLES:
        raise _invalid(f"{where}.role", f"expected one of {', '.join(_ROLES)}", "invalid_value")
    content = item["content"]
    allowed = _PARTS["assistant" if item["role"] == "assistant" else "other"]
    if isinstance(content, str):
        content = [{"type": allowed[0], "text": content}]
    if not isinstance(content, list):
        raise _invalid(f"{where}.content", "expected a string or an array", "invalid_type")
    return [_part(part, allowed, f"{where}.content[{n}]") for n, part in enumerate(content)]


def _part(part: Any, allowed: Sequence[str], where: str) -> Item:
    if not isinstance(part, dict) or part.get("type") not in allowed:
        raise _invalid(where, f"supported types are {', '.join(allowed)}", "invalid_value")
    added: Item = {}
    if part["type"] == "output_text":
        added = {"annotations": [], "logprobs": []}
    elif part["type"] == "input_image":
        added = {"detail": "auto"}
    return {**added, **deepcopy(part)}


def _invalid(where: str, why: str, code: str) -> ApiError:
    return ApiError(400, f"Invalid '{where}': {why}.", where, code)


# --- fields that are returned only on request ---


def shown_form(item: Item, include: Sequence[str]) -> Item:
    """Return the item without fields that must be requested."""
    shown = deepcopy(item)
    if shown["type"] == "reasoning" and "reasoning.encrypted_content" not in include:
        shown.pop("encrypted_content", None)
    if shown["type"] == "code_interpreter_call" and "code_interpreter_call.outputs" not in include:
        shown["outputs"] = None
    if shown["type"] == "file_search_call" and "file_search_call.results" not in include:
        shown["results"] = None
    if shown["type"] == "message":
        for part in shown["content"]:
            if part["type"] == "output_text" and "message.output_text.logprobs" not in include:
                part.pop("logprobs", None)
            if part["type"] == "input_image" and "message.input_image.image_url" not in include:
                part.pop("image_url", None)
    return shown
