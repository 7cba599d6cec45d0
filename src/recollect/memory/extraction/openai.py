"""Extraction by a model behind OpenAI's Chat Completions, or any endpoint that speaks it."""

import json
import re
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Unpack, cast

from ..pipeline.stages import Usage
from .asking import ExtractorOptions, Said, count_of
from .extractor import ModelExtractor
from .stage_prompts import Prompt

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIExtractor(ModelExtractor):
    """Learns what there is to know with a model of OpenAI's, or of another provider by its `base_url`.

    Without a client it makes one, which takes `OPENAI_API_KEY` and `OPENAI_BASE_URL` from the environment
    where no others are given. A client that is given stays the caller's, and is never closed.
    """

    package = "openai"
    forms = ("json_schema", "json_object", "text")
    form_words = re.compile(
        r"response_?format|json_?schema|json_?object|json.mode|structured.output|guided.?json", re.IGNORECASE
    )

    def __init__(
        self,
        model: str = "gpt-4o-mini",
        *,
        client: "AsyncOpenAI | None" = None,
        **options: Unpack[ExtractorOptions],
    ) -> None:
        super().__init__(model, client=client, **options)

    def _new_client(self, **options: Any) -> Any:
        return self._sdk.AsyncOpenAI(**options)

    def _send(self, client: Any, prompt: Prompt, form: str) -> AbstractAsyncContextManager[Any]:
        # No limit of tokens is sent: how it is called, and whether thoughts count, differs by endpoint.
        told = prompt.instructions if form == "json_schema" else with_schema(prompt)
        messages = [{"role": "system", "content": told}, {"role": "user", "content": prompt.text}]
        completions = client.chat.completions.with_streaming_response
        return cast(
            AbstractAsyncContextManager[Any],
            completions.create(model=self.model, messages=messages, **_response_format(prompt, form)),
        )

    def _read(self, body: dict[str, Any]) -> Said:
        choice, usage = body["choices"][0], body.get("usage") or {}
        message, finished = choice["message"], choice.get("finish_reason")
        return Said(
            _text_of(message.get("content")) or str(message.get("refusal") or ""),
            Usage(count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))),
            is_whole=finished != "length",
            is_refusal=bool(message.get("refusal")) or finished == "content_filter",
        )

    @property
    def _client_error(self) -> type[Exception]:
        return cast(type[Exception], self._sdk.OpenAIError)


def with_schema(prompt: Prompt) -> str:
    """The instructions for an endpoint that takes no schema: it is told in words."""
    schema = json.dumps(prompt.schema)
    return f"{prompt.instructions}\n\nThe JSON object has this schema:\n{schema}"


def _response_format(prompt: Prompt, form: str) -> dict[str, Any]:
    if form == "json_schema":
        schema = {"name": prompt.stage, "strict": True, "schema": prompt.schema}
        return {"response_format": {"type": form, "json_schema": schema}}
    return {"response_format": {"type": form}} if form == "json_object" else {}


def _text_of(content: Any) -> str:
    """The text of a message, which some endpoints give in parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    if content is not None and not isinstance(content, str):
        raise TypeError("the content of a message is neither a text nor parts")
    return content or ""
