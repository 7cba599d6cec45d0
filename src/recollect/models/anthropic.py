"""Models behind Anthropic's Messages API."""

import json
import re
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from .client import ModelClient, instructions_with_schema
from .values import ModelRequest, ModelResponse, parse_count, usage_of

DEFAULT_MAX_OUTPUT_TOKENS = 8_000

_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CUT_OFF = ("max_tokens", "model_context_window_exceeded")
_TOOL = "note_down"
_INVALID_JSON = "INVALID_JSON"  # the key under which the API returns arguments that are not JSON


class AnthropicModel(ModelClient):
    """A model of Anthropic. JSON is requested as the arguments of one tool."""

    package = "anthropic"
    # Models that always think, such as the default one, reject a forced call. They are offered the tool.
    formats = ("tool", "offered_tool", "text")
    format_words = re.compile(r"\btool|input_schema", re.IGNORECASE)

    def __init__(
        self, model: str, *, max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS, **options: Any
    ) -> None:
        super().__init__(model, **options)
        if max_output_tokens < 1:
            raise ValueError(f"max_output_tokens must be at least 1, and it is {max_output_tokens}")
        self._max_output_tokens = max_output_tokens

    def _send(
        self, client: Any, request: ModelRequest, response_format: str
    ) -> AbstractAsyncContextManager[Any]:
        sent = client.messages.with_streaming_response.create(
            model=self.model,
            system=_instructions(request, response_format),
            messages=[{"role": "user", "content": request.text}],
            max_tokens=request.max_output_tokens or self._max_output_tokens,
            **_tools(request, response_format),
        )
        return cast(AbstractAsyncContextManager[Any], sent)

    def _parse(self, body: dict[str, Any]) -> ModelResponse:
        usage, stopped = body.get("usage") or {}, body.get("stop_reason")
        blocks = body["content"]
        calls = [_arguments(block["input"]) for block in blocks if block["type"] == "tool_use"]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        input_tokens = sum(parse_count(usage.get(name)) for name in _INPUT_TOKENS)
        return ModelResponse(
            "\n".join(calls) if calls else "".join(texts),
            usage_of(input_tokens, parse_count(usage.get("output_tokens"))),
            is_complete=stopped not in _CUT_OFF,
            is_refusal=stopped == "refusal",
        )


def _instructions(request: ModelRequest, response_format: str) -> str:
    if response_format == "offered_tool":
        return f"{request.instructions}\n\nAnswer with one call of the tool {_TOOL}, and with nothing else."
    return request.instructions if response_format == "tool" else instructions_with_schema(request)


def _tools(request: ModelRequest, response_format: str) -> dict[str, Any]:
    """The one tool whose arguments are the response; nothing if the response is text."""
    if response_format == "text" or request.schema is None:
        return {}
    description = "Notes down the answer, all of it in one call."
    tool = {"name": _TOOL, "description": description, "input_schema": request.schema.schema}
    choice = {"type": "tool", "name": _TOOL} if response_format == "tool" else {"type": "auto"}
    return {"tools": [tool], "tool_choice": choice}


def _arguments(value: Any) -> str:
    """The arguments of a call as the model wrote them."""
    if isinstance(value, dict) and value.keys() == {_INVALID_JSON}:
        return str(value[_INVALID_JSON])
    return json.dumps(value, ensure_ascii=False)
