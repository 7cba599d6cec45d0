"""The making of one summary: part after part, within its limit, whatever the model does."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from ...errors import SummaryFailedError
from ...items import ModelUsage, estimate_text_tokens
from .prompts import Prompt, shortening_prompt, summary_prompt
from .sentences import cut_to_fit
from .transcript import Part, halve

logger = logging.getLogger(__name__)


class TooLongError(Exception):
    """The model does not take so much at once."""


@dataclass(frozen=True)
class Answer:
    """What a model has said to one request."""

    text: str
    usage: ModelUsage
    is_whole: bool = True
    """Not so one that was stopped for its length."""
    is_refusal: bool = False


def usage_of(input_tokens: int | None, output_tokens: int | None) -> ModelUsage:
    """What one request has cost, as far as the endpoint tells."""
    return ModelUsage(1, int(input_tokens or 0), int(output_tokens or 0))


Ask = Callable[[Prompt, int], Awaitable[Answer]]


class Making:
    """The making of one summary, request by request."""

    def __init__(self, ask: Ask, previous: str | None, parts: Iterable[Part], max_tokens: int) -> None:
        self._ask_model = ask
        self._so_far = previous
        self._parts = deque(parts)
        self._limit = max_tokens
        self.usage = ModelUsage()

    @property
    def text(self) -> str:
        """The summary so far; in the end, all of it."""
        if self._so_far is None:
            raise SummaryFailedError("there is nothing to summarize")
        return self._so_far

    async def run(self) -> None:
        """Take part after part into the summary."""
        if not self._parts and self._so_far is not None:
            self._so_far = await self._within_limit(self._so_far)
        while self._parts:
            part = self._parts.popleft()
            try:
                answer = await self._ask(summary_prompt(part, self._so_far, self._limit))
            except TooLongError as error:
                self._retry_smaller(part, error)
            else:
                self._so_far = await self._within_limit(answer.text, answer.is_whole)

    def _retry_smaller(self, part: Part, error: TooLongError) -> None:
        halves = halve(part)
        if len(halves) == 1:
            raise SummaryFailedError("the model takes not even a small part at once") from error
        self._parts.extendleft(reversed(halves))

    async def _within_limit(self, text: str, is_whole: bool = True) -> str:
        """A summary that fits: as it is, or as the model shortens it, or cut."""
        if is_whole and self._fits(text):
            return text
        try:
            answer = await self._ask(shortening_prompt(text, self._limit))
        except (SummaryFailedError, TooLongError) as error:
            logger.warning("a summary that is too long could not be shortened (%s)", type(error).__name__)
        else:
            text, is_whole = answer.text, answer.is_whole
        return cut_to_fit(text, self._limit, is_whole=is_whole)

    def _fits(self, text: str) -> bool:
        return estimate_text_tokens(text) <= self._limit

    async def _ask(self, prompt: Prompt) -> Answer:
        answer = await self._ask_model(prompt, self._limit)
        self.usage += answer.usage
        return answer
