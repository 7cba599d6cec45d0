"""Summaries by a model of Anthropic's."""

from typing import TYPE_CHECKING, Any, Unpack, cast

from ...extras import DEFAULT_ANTHROPIC_MODEL
from .making import Answer, usage_of
from .model import ModelOptions, ModelSummarizer
from .prompts import Prompt

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_ROOM_FOR_THOUGHTS = 1_000  # tokens, beside the answer: models that think spend them from the same limit
_CUT_OFF = ("max_tokens", "model_context_window_exceeded")


class AnthropicSummarizer(ModelSummarizer):
    """Summarizes with a model of Anthropic's.

    Without a client it makes one, which takes `ANTHROPIC_API_KEY` from the environment where no key is given.
    A client that is given stays the caller's, and is never closed.
    """

    package = "anthropic"

    def __init__(
        self,
        model: str = DEFAULT_ANTHROPIC_MODEL,
        *,
        client: "AsyncAnthropic | None" = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(model, client=client, **options)

    def _new_client(self, **options: Any) -> Any:
        return self._sdk.AsyncAnthropic(**options)

    async def _send(self, client: Any, prompt: Prompt, max_tokens: int) -> Any:
        return await client.messages.create(
            model=self.model,
            system=prompt.instructions,
            messages=[{"role": "user", "content": prompt.text}],
            max_tokens=2 * max_tokens + _ROOM_FOR_THOUGHTS,
        )

    def _read(self, answered: Any) -> Answer:
        usage = answered.usage
        return Answer(
            "".join(block.text for block in answered.content if block.type == "text"),
            usage_of(usage.input_tokens, usage.output_tokens),
            is_whole=answered.stop_reason not in _CUT_OFF,
            is_refusal=answered.stop_reason == "refusal",
        )

    @property
    def _client_error(self) -> type[Exception]:
        return cast(type[Exception], self._sdk.AnthropicError)
