"""What the summarizers that ask a model have in common: parts, limits, faults, and clients per event loop."""

import asyncio
import re
from abc import abstractmethod
from typing import Any, TypedDict

from ...errors import SummaryFailedError
from ...items import estimate_text_tokens
from .clients import AsksProvider
from .making import Answer, Making, TooLongError
from .prompts import OVERHEAD, Prompt
from .protocol import Summary, SummaryRequest
from .sentences import well_formed
from .transcript import Entry, Part, split_parts

DEFAULT_MAX_INPUT_TOKENS = 24_000  # what most models take with room to spare, also if the estimate is low
_LEAST_INPUT_TOKENS = 1_000

_TOO_LONG = re.compile(
    r"context[ _](length|window|size|limit)|(prompt|input) is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_THOUGHTS = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)


class ModelOptions(TypedDict, total=False):
    """How a model is reached, and how it is used."""

    base_url: str | None
    api_key: str | None
    timeout: float
    """Seconds for each request, with the retries of the client; 30 by default."""
    max_input_tokens: int
    """How much is sent in a request, about; 24,000 by default."""


class ModelSummarizer(AsksProvider):
    """A summarizer that asks a model. Whatever goes wrong is a `SummaryFailedError` with its cause.

    Input over `max_input_tokens`, or over what the model says it takes, is given to it in parts, each with
    the summary of those before.
    """

    least_input_tokens = _LEAST_INPUT_TOKENS

    def __init__(
        self,
        model: str,
        *,
        client: Any,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 30,
        max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS,
    ) -> None:
        super().__init__(
            model,
            client=client,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            max_input_tokens=max_input_tokens,
        )

    async def __call__(self, request: SummaryRequest) -> Summary:
        """The summary of what came before and of these turns, within the limit of the request."""
        previous, parts = await asyncio.to_thread(self._split, request)
        making = Making(self._ask, previous, parts, request.max_tokens)
        await making.run()
        return Summary(making.text, self.model, making.usage)

    # --- for each provider to say ---

    @abstractmethod
    async def _send(self, client: Any, prompt: Prompt, max_tokens: int) -> Any:
        """Ask for a text of about so many tokens."""

    @abstractmethod
    def _read(self, answered: Any) -> Answer:
        """What the provider's object says."""

    # --- asking ---

    async def _ask(self, prompt: Prompt, max_tokens: int) -> Answer:
        """One answer of the model, with words in it."""
        answered = await self._sent(prompt, max_tokens)
        try:
            answer = self._read(answered)
            text = well_formed(_THOUGHTS.sub("", answer.text)).strip()
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise SummaryFailedError("the model's answer cannot be read") from error
        if answer.is_refusal:
            raise SummaryFailedError("the model refused to summarize this")
        if not text:
            raise SummaryFailedError("the model returned an empty summary")
        return Answer(text, answer.usage, answer.is_whole)

    async def _sent(self, prompt: Prompt, max_tokens: int) -> Any:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._send(await self._client(), prompt, max_tokens)
        except TimeoutError as error:
            raise SummaryFailedError(f"the model gave no answer within {self._timeout:g} s") from error
        except (self._client_error, TypeError, ValueError) as error:  # the last two: no key, no JSON
            if _is_too_long(error):
                raise TooLongError from error
            raise SummaryFailedError(f"asking the model failed ({type(error).__name__})") from error

    def _split(self, request: SummaryRequest) -> tuple[str | None, list[Part]]:
        """The summary to begin with, and the transcript in parts that fit beside it."""
        previous = well_formed(request.previous or "").strip()
        known = estimate_text_tokens(previous)
        before = []
        if known > max(self._max_input_tokens // 2, request.max_tokens):
            # Longer than a summary should be: it is taken in parts as well.
            before, previous, known = [Entry("summary of what came before", previous)], "", 0
        room = self._max_input_tokens - OVERHEAD - max(known, request.max_tokens)
        return previous or None, split_parts(request.items, max(room, self._max_input_tokens // 4), before)


def _is_too_long(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    if status == 413 or getattr(error, "code", None) == "context_length_exceeded":
        return True
    return status in (400, 422) and _TOO_LONG.search(str(error)) is not None
