"""Asking a model: clients for each event loop, the form of the answer, bounds, and faults."""

import asyncio
import json
import re
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

from ...errors import ModelRefusedError, UnusableAnswerError
from ...strategies.summarizers.clients import AsksProvider
from ..pipeline.stages import Usage
from ..run import MOST_TOKENS
from .faults import UnknownFormError, fault_of, fault_of_status, unavailable
from .stage_prompts import Prompt

MOST_RAW = 100_000
"""Characters that are kept of what a model said."""

DEFAULT_MAX_INPUT_TOKENS = 24_000  # what most models take with room to spare, also if the estimate is low
_LEAST_INPUT_TOKENS = 4_000  # the instructions alone are a quarter of that
_LONGEST_BODY = 4_000_000  # bytes; an answer of a million characters, with room for what is around it


class ExtractorOptions(TypedDict, total=False):
    """How a model is reached, and how it is used."""

    base_url: str | None
    api_key: str | None
    timeout: float
    """Seconds for each request; 60 by default."""
    max_input_tokens: int
    """How much is sent in a request, about; 24,000 by default."""


@dataclass(frozen=True)
class Said:
    """What a model has said to one request."""

    text: str = field(repr=False)
    usage: Usage
    is_whole: bool = True
    """Not so one that was stopped for its length."""
    is_refusal: bool = False


class AsksModel(AsksProvider):
    """Whoever asks a model, through the client of its provider.

    The client retries nothing: whoever asked decides whether and when to ask again.
    """

    least_input_tokens = _LEAST_INPUT_TOKENS
    client_options: ClassVar[Mapping[str, Any]] = {"max_retries": 0}
    forms: ClassVar[tuple[str, ...]]
    """How an answer can be asked for, the strictest first; what an endpoint refuses is not used again."""
    form_words: ClassVar[re.Pattern[str]]
    """The words by which an endpoint refuses a form."""

    def __init__(
        self,
        model: str,
        *,
        client: Any,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
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
        self._form = 0

    # --- for each provider to say ---

    @abstractmethod
    def _send(self, client: Any, prompt: Prompt, form: str) -> AbstractAsyncContextManager[Any]:
        """The answer to a prompt, to be read byte by byte."""

    @abstractmethod
    def _read(self, body: dict[str, Any]) -> Said:
        """What the provider's answer says; where it is not of its form, one of the errors of reading."""

    # --- asking ---

    async def _ask(self, prompt: Prompt) -> Said:
        """What the model says, in the strictest form that its endpoint knows, which is remembered."""
        for place in range(self._form, len(self.forms)):
            try:
                body = await self._fetch(prompt, self.forms[place])
            except UnknownFormError as error:
                refused = error
            else:
                self._form = max(self._form, place)
                return self._said(body)
        raise ModelRefusedError("the model's endpoint takes no form of the request") from refused.__cause__

    async def _fetch(self, prompt: Prompt, form: str) -> bytes:
        import httpx2

        try:
            async with asyncio.timeout(self._timeout):
                async with self._send(await self._client(), prompt, form) as response:
                    return await _bounded_body(response)
        except TimeoutError as error:
            raise unavailable(f"the model gave no answer within {self._timeout:g} s") from error
        except (self._client_error, httpx2.HTTPError, TypeError, ValueError) as error:
            # The last two: no key, or nothing that can be sent.
            raise fault_of(error, self.form_words) from error

    def _said(self, body: bytes) -> Said:
        """What the body of an answer holds."""
        try:
            answered = json.loads(body)
            if answered.get("error"):
                raise _told_fault(answered["error"])
            return self._read(answered)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise UnusableAnswerError("the endpoint's answer is not of its form", _raw(body)) from error


async def _bounded_body(response: Any) -> bytes:
    """The body of an answer; one without end is given up."""
    body = bytearray()
    async for chunk in response.iter_bytes():
        body += chunk
        if len(body) > _LONGEST_BODY:
            raise UnusableAnswerError(f"the answer is longer than {_LONGEST_BODY} bytes", _raw(body))
    return bytes(body)


def _raw(body: bytes | bytearray) -> str:
    return body[: 4 * MOST_RAW].decode(errors="replace")[:MOST_RAW]


def _told_fault(told: Any) -> Exception:
    """An error that some endpoints tell with status 200."""
    code = told.get("code") if isinstance(told, dict) else None
    return fault_of_status(code if isinstance(code, int) and 400 <= code < 600 else 500)


def count_of(given: object) -> int:
    """A count of tokens, as far as the endpoint tells it."""
    if not isinstance(given, int) or isinstance(given, bool):
        return 0
    return min(max(given, 0), MOST_TOKENS)
