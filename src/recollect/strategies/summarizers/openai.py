"""Summaries by a model behind OpenAI's Chat Completions, or any endpoint that speaks it."""

from typing import TYPE_CHECKING, Any, Unpack, cast

from .making import Answer, usage_of
from .model import ModelOptions, ModelSummarizer
from .prompts import Prompt

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAISummarizer(ModelSummarizer):
    """Summarizes with a model of OpenAI's, or of another provider by its `base_url`.

    Without a client it makes one, which takes `OPENAI_API_KEY` and `OPENAI_BASE_URL` from the environment
    where no others are given. A client that is given stays the caller's, and is never closed.
    """

    package = "openai"

    def __init__(
        self,
        model: str = "gpt-4o-mini",
        *,
        client: "AsyncOpenAI | None" = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(model, client=client, **options)

    def _new_client(self, **options: Any) -> Any:
        return self._sdk.AsyncOpenAI(**options)

    async def _send(self, client: Any, prompt: Prompt, max_tokens: int) -> Any:  # noqa: ARG002
        # No limit of tokens is sent: how it is called, and whether thoughts count, differs by endpoint.
        messages = [
            {"role": "system", "content": prompt.instructions},
            {"role": "user", "content": prompt.text},
        ]
        return await client.chat.completions.create(model=self.model, messages=messages)

    def _read(self, answered: Any) -> Answer:
        choice, usage = answered.choices[0], answered.usage
        return Answer(
            choice.message.content or "",
            usage_of(usage.prompt_tokens, usage.completion_tokens) if usage else usage_of(0, 0),
            is_whole=choice.finish_reason != "length",
            is_refusal=bool(choice.message.refusal) or choice.finish_reason == "content_filter",
        )

    @property
    def _client_error(self) -> type[Exception]:
        return cast(type[Exception], self._sdk.OpenAIError)
