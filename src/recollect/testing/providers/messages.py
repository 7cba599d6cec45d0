"""Anthropic's Messages API."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from .anthropic_dialect import AnthropicDialect
from .conversation_items import make_id
from .core import ApiError, Dialect, json_body
from .replies import Reply, ToolCall, Usage, tokens_in
from .scripted import ScriptedApi, event

_VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
_REMOVED = {"2026-10-21": ("temperature", "top_p", "top_k")}
_REQUIRED: dict[str, type] = {"model": str, "messages": list, "max_tokens": int}
# For each block: the type of its deltas, the field with its text, and the name of that field in a delta.
_DELTAS = {
    "text": ("text_delta", "text", "text"),
    "thinking": ("thinking_delta", "thinking", "thinking"),
    "tool_use": ("input_json_delta", "input", "partial_json"),
}
_STOPS = {"end": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


class MessagesApi(ScriptedApi):
    """Return one message of blocks for a list of messages."""

    dialect: Dialect = AnthropicDialect()
    path = "/v1/messages"

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Reject invalid requests: no version, missing fields, calls without output."""
        _check_version(headers.get("anthropic-version"), body)
        for name, kind in _REQUIRED.items():
            if name not in body:
                raise ApiError(400, f"{name}: Field required")
            if not isinstance(body[name], kind) or not body[name]:
                raise ApiError(400, f"{name}: Input should be a valid and non-empty {kind.__name__}")
        for index, message in enumerate(body["messages"]):
            _check_message(message, f"messages.{index}")
        _check_calls(body["messages"])

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the API: messages, and the number of their tokens."""
        return [*super().routes(), Route(f"{self.path}/count_tokens", self._count, methods=["POST"])]

    async def _count(self, request: Request) -> Response:
        body = await json_body(request)
        self.check({"max_tokens": 1, **body}, request.headers)
        return JSONResponse({"input_tokens": tokens_in(self.prompt(body))})

    def prompt(self, body: dict[str, Any]) -> Any:
        """Return the system prompt, the tools and the messages."""
        return [body.get("system"), body.get("tools"), body["messages"]]

    def whole(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """Return the message as one document."""
        usage = reply.usage_for(self.prompt(body))
        blocks = [_block(block) for block in _blocks(reply)]
        return {**_message(body, usage), "content": blocks, **_stop(reply)}

    def events(self, body: dict[str, Any], reply: Reply) -> Iterator[bytes]:
        """Stream the message as events."""
        for data in self._events(body, reply):
            yield event(data, data["type"])

    def _events(self, body: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
        usage = reply.usage_for(self.prompt(body))
        start = _message(body, Usage(usage.input_tokens, 1, usage.cached_tokens))
        yield {"type": "message_start", "message": start}
        yield {"type": "ping"}
        for index, block in enumerate(_blocks(reply)):
            yield from _block_events(block, index, reply)
        if reply.error is not None:
            yield self.dialect.error_body(reply.error)
            return
        yield {"type": "message_delta", "delta": _stop(reply), "usage": _usage(usage)}
        yield {"type": "message_stop"}


# --- request ---


def _check_version(version: str | None, body: dict[str, Any]) -> None:
    if version is None:
        raise ApiError(400, "anthropic-version: header is required")
    if version not in _VERSIONS:
        raise ApiError(400, f'anthropic-version: "{version}" is not a valid version')
    for name in _REMOVED.get(version, ()):
        if name in body:
            raise ApiError(400, f"{name}: Extra inputs are not permitted")


def _check_message(message: Any, where: str) -> None:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
        raise ApiError(400, f"{where}: expected a message with a known role")
    content = message.get("content")
    if not isinstance(content, str | list):
        raise ApiError(400, f"{where}.content: Field required")
    empty = {"type": "text", "text": ""}
    if not content or any(isinstance(block, dict) and block == empty for block in content):
        raise ApiError(400, f"{where}: text content blocks must be non-empty")


def _check_calls(messages: list[dict[str, Any]]) -> None:
    """Check that the message after a call contains its output, and no others."""
    awaited: set[str] = set()
    for index, message in enumerate(messages):
        answered = _ids_in(message, "tool_result", "tool_use_id")
        if awaited - answered:
            _refuse_calls(index - 1, "`tool_use` ids without `tool_result` blocks after", awaited - answered)
        if answered - awaited:
            _refuse_calls(index, "unexpected `tool_use_id` in `tool_result` blocks", answered - awaited)
        awaited = _ids_in(message, "tool_use", "id")
    if awaited:
        _refuse_calls(len(messages) - 1, "`tool_use` ids without `tool_result` blocks after", awaited)


def _refuse_calls(index: int, why: str, ids: set[str]) -> None:
    raise ApiError(400, f"messages.{index}: {why}: {', '.join(sorted(ids))}")


def _ids_in(message: dict[str, Any], kind: str, field: str) -> set[str]:
    content = message["content"]
    blocks = content if isinstance(content, list) else []
    return {str(block.get(field)) for block in blocks if block.get("type") == kind}


# --- response ---


def _blocks(reply: Reply) -> Iterator[dict[str, Any]]:
    """Return the blocks of a reply, with call arguments as text."""
    if reply.reasoning is not None:
        yield {"type": "thinking", "thinking": reply.reasoning, "signature": "EqQB"}
    text = reply.text if reply.refusal is None else reply.refusal
    if text:
        yield {"type": "text", "text": text}
    for call in reply.tool_calls:
        yield _call(call)


def _call(call: ToolCall) -> dict[str, Any]:
    call_id = call.call_id or make_id("toolu")
    return {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments_text()}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block in its final form: this API parses arguments."""
    return {**block, "input": _parsed(block["input"])} if block["type"] == "tool_use" else block


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return {"INVALID_JSON": arguments}


def _block_events(block: dict[str, Any], index: int, reply: Reply) -> Iterator[dict[str, Any]]:
    """Yield the events of a block: start without text, deltas, stop."""
    kind, source, field = _DELTAS[block["type"]]
    bare = {source: {} if source == "input" else ""}
    deltas: list[dict[str, Any]] = [{"type": kind, field: piece} for piece in reply.pieces(block[source])]
    if "signature" in block:
        bare["signature"] = ""
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    yield {"type": "content_block_start", "index": index, "content_block": {**block, **bare}}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _message(body: dict[str, Any], usage: Usage) -> dict[str, Any]:
    return {
        "id": make_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_usage(usage), "service_tier": "standard"},
    }


def _stop(reply: Reply) -> dict[str, Any]:
    reason = "tool_use" if reply.tool_calls and reply.stop == "end" else _STOPS[reply.stop]
    return {"stop_reason": "refusal" if reply.refusal is not None else reason, "stop_sequence": None}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }
