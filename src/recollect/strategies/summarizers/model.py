"""Summaries by a model of OpenAI or Anthropic."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

from ...errors import ExtractionError, SummaryFailedError
from ...extras import DEFAULT_ANTHROPIC_MODEL
from ...items import ModelUsage, estimate_text_tokens
from ...models import (
    AnthropicModel,
    ModelClient,
    ModelOptions,
    ModelRequest,
    ModelResponse,
    OpenAIModel,
    UsesModel,
)
from ...models.client import DEFAULT_MAX_INPUT_TOKENS
from ...models.errors import TooLongError
from ...models.text import strip_thoughts, to_valid_unicode
from .prompts import OVERHEAD, shortening_request, summary_request
from .protocol import Summary, SummaryRequest
from .sentences import cut_to_fit
from .transcript import Entry, Part, halve, split_parts

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)

_LEAST_INPUT_TOKENS = 1_000
_TIMEOUT = 30.0  # seconds


class ModelSummarizer(UsesModel):
    """A summarizer that asks a model. Every failure is a `SummaryFailedError` with its cause.

    Input over `max_input_tokens`, or over the limit of the model, is sent in parts, each with the summary of
    the parts before it.
    """

    def __init__(self, client: ModelClient, max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS) -> None:
        super().__init__(client, max_input_tokens=max_input_tokens, least_input_tokens=_LEAST_INPUT_TOKENS)

    async def __call__(self, request: SummaryRequest) -> Summary:
        """Summarize the previous summary and the turns of the request, within its limit."""
        previous, parts = await asyncio.to_thread(self._split, request)
        builder = _SummaryBuilder(self._client, previous, parts, request.max_tokens)
        await builder.run()
        return Summary(builder.text, self.model, builder.usage)

    def _split(self, request: SummaryRequest) -> tuple[str | None, list[Part]]:
        """The summary to start from, and the transcript in parts that fit beside it."""
        previous = to_valid_unicode(request.previous or "").strip()
        known = estimate_text_tokens(previous)
        before = []
        if known > max(self._max_input_tokens // 2, request.max_tokens):
            # It is longer than a summary should be, so it is sent in parts as well.
            before, previous, known = [Entry("summary of what came before", previous)], "", 0
        room = self._max_input_tokens - OVERHEAD - max(known, request.max_tokens)
        return previous or None, split_parts(request.items, max(room, self._max_input_tokens // 4), before)


class OpenAISummarizer(ModelSummarizer):
    """Summarizes with a model of OpenAI, or of another provider by its `base_url`.

    Without a `client` it opens one, which reads `OPENAI_API_KEY` and `OPENAI_BASE_URL` from the environment
    unless `api_key` and `base_url` are given. A `client` that is passed in belongs to the caller and is never
    closed.
    """

    def __init__(
        self,
        model: str = "gpt-4o-mini",
        *,
        client: "AsyncOpenAI | None" = None,
        max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS,
        **options: Unpack[ModelOptions],
    ) -> None:
        options.setdefault("timeout", _TIMEOUT)
        super().__init__(
            OpenAIModel(model, owner=type(self).__name__, client=client, **options), max_input_tokens
        )


class AnthropicSummarizer(ModelSummarizer):
    """Summarizes with a model of Anthropic.

    Without a `client` it opens one, which reads `ANTHROPIC_API_KEY` from the environment unless `api_key` is
    given. A `client` that is passed in belongs to the caller and is never closed.
    """

    def __init__(
        self,
        model: str = DEFAULT_ANTHROPIC_MODEL,
        *,
        client: "AsyncAnthropic | None" = None,
        max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS,
        **options: Unpack[ModelOptions],
    ) -> None:
        options.setdefault("timeout", _TIMEOUT)
        super().__init__(
            AnthropicModel(model, owner=type(self).__name__, client=client, **options), max_input_tokens
        )


class _SummaryBuilder:
    """Builds one summary, request by request."""

    def __init__(
        self, client: ModelClient, previous: str | None, parts: Iterable[Part], max_tokens: int
    ) -> None:
        self._client = client
        self._summary = previous
        self._parts = deque(parts)
        self._limit = max_tokens
        self.usage = ModelUsage()

    @property
    def text(self) -> str:
        """The summary."""
        if self._summary is None:
            raise SummaryFailedError("there is nothing to summarize")
        return self._summary

    async def run(self) -> None:
        """Extend the summary by one part after another."""
        if not self._parts and self._summary is not None:
            self._summary = await self._shorten_to_limit(self._summary)
        while self._parts:
            part = self._parts.popleft()
            try:
                response = await self._ask(summary_request(part, self._summary, self._limit))
            except TooLongError as error:
                self._requeue_halves(part, error)
            else:
                self._summary = await self._shorten_to_limit(response.text, response.is_complete)

    def _requeue_halves(self, part: Part, error: TooLongError) -> None:
        halves = halve(part)
        if len(halves) == 1:
            raise SummaryFailedError("the model rejects even a small part as too long") from error
        self._parts.extendleft(reversed(halves))

    async def _shorten_to_limit(self, text: str, is_complete: bool = True) -> str:
        """The summary if it fits. Otherwise the model shortens it; if that fails too, it is cut."""
        if is_complete and estimate_text_tokens(text) <= self._limit:
            return text
        try:
            response = await self._ask(shortening_request(text, self._limit))
        except (SummaryFailedError, TooLongError) as error:
            logger.warning(
                "summary could not be shortened by the model (%s): cutting it", type(error).__name__
            )
        else:
            text, is_complete = response.text, response.is_complete
        return cut_to_fit(text, self._limit, is_whole=is_complete)

    async def _ask(self, request: ModelRequest) -> ModelResponse:
        """A response with text in it. Raises `SummaryFailedError` or `TooLongError`."""
        try:
            response = await self._client.ask(request)
        except ExtractionError as error:
            raise SummaryFailedError(str(error)) from error.__cause__ or error
        if response.is_refusal:
            raise SummaryFailedError("the model refused to summarize this")
        self.usage += response.usage
        answer = strip_thoughts(response.text)
        text = to_valid_unicode(response.text if answer is None else answer).strip()
        if not text:
            raise SummaryFailedError("the model returned an empty summary")
        return ModelResponse(text, response.usage, response.is_complete)
