"""Models behind OpenAI's Chat Completions or Responses API, or any endpoint that implements one of them."""

import re
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from .client import ModelClient, instructions_with_schema
from .values import ModelRequest, ModelResponse, parse_count, usage_of

_FORMAT_WORDS = re.compile(
    r"response_?format|text.format|json_?schema|json_?object|json.mode|structured.output|guided.?json",
    re.IGNORECASE,
)


class OpenAIModel(ModelClient):
    """A model of OpenAI, or of another provider by its `base_url`, asked by Chat Completions."""

    package = "openai"
    formats = ("json_schema", "json_object", "text")
    format_words = _FORMAT_WORDS

    def _send(
        self, client: Any, request: ModelRequest, response_format: str
    ) -> AbstractAsyncContextManager[Any]:
        # No token limit is sent: its name, and whether reasoning counts, differ by endpoint.
        is_strict = response_format == "json_schema"
        instructions = request.instructions if is_strict else instructions_with_schema(request)
        messages = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": request.text},
        ]
        sent = client.chat.completions.with_streaming_response.create(
            model=self.model, messages=messages, **_response_format(request, response_format)
        )
        return cast(AbstractAsyncContextManager[Any], sent)

    def _parse(self, body: dict[str, Any]) -> ModelResponse:
        choice, usage = body["choices"][0], body.get("usage") or {}
        message, finished = choice["message"], choice.get("finish_reason")
        return ModelResponse(
            _text_of(message.get("content")) or str(message.get("refusal") or ""),
            usage_of(parse_count(usage.get("prompt_tokens")), parse_count(usage.get("completion_tokens"))),
            is_complete=finished != "length",
            is_refusal=bool(message.get("refusal")) or finished == "content_filter",
        )


class OpenAIResponsesModel(ModelClient):
    """A model of OpenAI, or of another provider by its `base_url`, asked by the Responses API.

    The provider is asked not to store the request.
    """

    package = "openai"
    formats = ("json_schema", "json_object", "text")
    format_words = _FORMAT_WORDS

    def _send(
        self, client: Any, request: ModelRequest, response_format: str
    ) -> AbstractAsyncContextManager[Any]:
        is_strict = response_format == "json_schema"
        sent = client.responses.with_streaming_response.create(
            model=self.model,
            instructions=request.instructions if is_strict else instructions_with_schema(request),
            input=request.text,
            store=False,
            **_text_format(request, response_format),
        )
        return cast(AbstractAsyncContextManager[Any], sent)

    def _parse(self, body: dict[str, Any]) -> ModelResponse:
        usage = body.get("usage") or {}
        if body.get("status") == "failed":
            raise LookupError("a failed response has no output")
        outputs = [part for item in body["output"] if item["type"] == "message" for part in item["content"]]
        texts = [part["text"] for part in outputs if part["type"] == "output_text"]
        refusals = [part["refusal"] for part in outputs if part["type"] == "refusal"]
        reason = (body.get("incomplete_details") or {}).get("reason")
        return ModelResponse(
            "".join(texts or refusals),
            usage_of(parse_count(usage.get("input_tokens")), parse_count(usage.get("output_tokens"))),
            is_complete=body.get("status") != "incomplete",
            is_refusal=bool(refusals) or reason == "content_filter",
        )


def _text_format(request: ModelRequest, response_format: str) -> dict[str, Any]:
    if response_format == "json_schema" and request.schema is not None:
        schema = {"name": request.schema.name, "strict": True, "schema": request.schema.schema}
        return {"text": {"format": {"type": response_format, **schema}}}
    return {"text": {"format": {"type": response_format}}} if response_format == "json_object" else {}


def _response_format(request: ModelRequest, response_format: str) -> dict[str, Any]:
    if response_format == "json_schema" and request.schema is not None:
        schema = {"name": request.schema.name, "strict": True, "schema": request.schema.schema}
        return {"response_format": {"type": response_format, "json_schema": schema}}
    return {"response_format": {"type": response_format}} if response_format == "json_object" else {}


def _text_of(content: Any) -> str:
    """The text of a message. Some endpoints send it as a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    if content is not None and not isinstance(content, str):
        raise TypeError("the content of a message must be a string or a list of parts")
    return content or ""
