"""OpenAI's Chat Completions API, which most other providers implement too."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from .conversation_items import make_id
from .core import ApiError, Dialect
from .openai_dialect import OpenAIDialect
from .replies import Reply, ToolCall, Usage
from .scripted import ScriptedApi, event, require, require_objects

_TOO_LONG = (
    "This model's maximum context length is {limit} tokens. "
    "However, your messages resulted in {tokens} tokens. Please reduce the length of the messages."
)
_MOST_CHOICES = 128
_ROLES = ("developer", "system", "user", "assistant", "tool", "function")
_STOPS = {"end": "stop", "length": "length", "content_filter": "content_filter"}


class ChatCompletionsApi(ScriptedApi):
    """Return one message for a list of messages, `n` times."""

    dialect: Dialect = OpenAIDialect("messages", _TOO_LONG)
    path = "/v1/chat/completions"

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:  # noqa: ARG002
        """Reject invalid requests: unknown roles, or calls and outputs that do not match."""
        require(body, "model", str)
        messages = require_objects(body, "messages")
        for index, message in enumerate(messages):
            if message.get("role") not in _ROLES:
                where = f"messages[{index}].role"
                raise ApiError(400, f"Invalid value for '{where}'.", where, "invalid_value")
        _check_calls(messages)
        count = body.get("n", 1)
        if not isinstance(count, int) or not 1 <= count <= _MOST_CHOICES:
            raise ApiError(400, f"Invalid 'n': expected 1 to {_MOST_CHOICES}.", "n", "invalid_value")

    def prompt(self, body: dict[str, Any]) -> Any:
        """Return the tools and the messages."""
        return [body.get("tools"), body["messages"]]

    def whole(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """Return the completion as one document."""
        calls = [_call(call) for call in reply.tool_calls]
        message = {
            "role": "assistant",
            "content": reply.text,
            "refusal": reply.refusal,
            "annotations": [],
            **({"tool_calls": calls} if calls else {}),
        }
        choice = {"message": message, "logprobs": None, "finish_reason": _finish(reply)}
        choices = [{"index": index, **choice} for index in range(body.get("n", 1))]
        usage = _usage(reply.usage_for(self.prompt(body)))
        return {**_head(body, "chat.completion"), "choices": choices, "usage": usage}

    def events(self, body: dict[str, Any], reply: Reply) -> Iterator[bytes]:
        """Stream the completion as chunks. The last one has the usage, if requested."""
        head = _head(body, "chat.completion.chunk")
        wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        if wants_usage:
            head["usage"] = None
        indexes = range(body.get("n", 1))
        for delta in _deltas(reply):
            for index in indexes:
                yield event({**head, **_choice(delta, None, index)})
        if reply.error is not None:
            yield event(self.dialect.error_body(reply.error))
            return
        for index in indexes:
            yield event({**head, **_choice({}, _finish(reply), index)})
        if wants_usage:
            yield event({**head, "choices": [], "usage": _usage(reply.usage_for(self.prompt(body)))})
        yield event("[DONE]")


def _check_calls(messages: list[dict[str, Any]]) -> None:
    """Check that the messages right after each call contain its outputs, and no others."""
    awaited: list[str] = []
    for message in [*messages, {"role": "the end"}]:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in awaited:
                text = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
                raise ApiError(400, f"Invalid parameter: {text}.", "messages")
            awaited.remove(message["tool_call_id"])
        else:
            if awaited:
                missing = ", ".join(awaited)
                text = "An assistant message with 'tool_calls' must be followed by tool messages responding"
                raise ApiError(400, f"{text} to each 'tool_call_id'. Missing: {missing}", "messages")
            awaited = [call["id"] for call in message.get("tool_calls") or []]


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "", "refusal": None}
    field, text = ("refusal", reply.refusal) if reply.refusal is not None else ("content", reply.text)
    for piece in reply.pieces(text or ""):
        yield {field: piece}
    for index, call in enumerate(reply.tool_calls):
        begun = {**_call(call), "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [{"index": index, **begun}]}
        for piece in reply.pieces(call.arguments_text()):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.call_id or make_id("call"),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments_text()},
    }


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": make_id("chatcmpl").replace("_", "-", 1),
        "object": kind,
        "created": int(time.time()),
        "model": body["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_recollect",
    }


def _choice(delta: dict[str, Any], finish: str | None, index: int) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}]}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.tool_calls and reply.stop == "end" else _STOPS[reply.stop]


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
