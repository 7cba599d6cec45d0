"""The three stages of the pipeline, done by a model of OpenAI or Anthropic."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ...errors import ExtractionError, ModelRefusedError, UnusableAnswerError
from ...extras import DEFAULT_ANTHROPIC_MODEL
from ...models import AnthropicModel, ModelClient, ModelOptions, ModelResponse, OpenAIModel, UsesModel
from ...models.anthropic import DEFAULT_MAX_OUTPUT_TOKENS
from ...models.client import DEFAULT_MAX_INPUT_TOKENS, MOST_RAW
from ...models.errors import TooLongError
from ..entry import Entry
from ..pipeline.stages import Answer, Candidate, Excerpt, Extractor, Mind, Modification, Update, Usage
from .grounding import decide, ground
from .responses import parse_mind, parse_modification, parse_update
from .stage_prompts import (
    PROMPT_VERSION,
    StagePrompt,
    has_user_message,
    mind_prompt,
    modification_prompt,
    split_excerpt,
    update_prompt,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)

T = TypeVar("T")
Counts = dict[str, int]

_LEAST_INPUT_TOKENS = 4_000  # the instructions alone take a quarter of that
_TIMEOUT = 60.0  # seconds
_MAX_RETRIES = 0  # the pipeline retries a failed run; retries of the client would multiply its attempts


class ModelExtractor(UsesModel):
    """Runs the three stages by asking a model."""

    def __init__(self, client: ModelClient, max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS) -> None:
        super().__init__(client, max_input_tokens=max_input_tokens, least_input_tokens=_LEAST_INPUT_TOKENS)

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """What is new or changed in the messages; nothing if none of them is the user's.

        A conversation that is too long for one request is sent in parts.
        """
        answers: list[Answer[Modification]] = []
        for part in await asyncio.to_thread(split_excerpt, excerpt, self._max_input_tokens):
            try:
                answer = await self._answer(
                    partial(modification_prompt, part), partial(_read_modification, part)
                )
            except ExtractionError as error:
                _add_usage(error, _sum([answer.usage for answer in answers]))
                raise
            answers.append(answer)
        return _join(answers) if answers else _empty_answer(Modification("", ()))

    async def update(
        self, excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry]
    ) -> Answer[Update]:
        """The decision on each candidate. The model is not asked if there are no known entries to compare."""
        if not candidates or not known:
            return _empty_answer(Update(()))
        prompt = partial(update_prompt, excerpt, candidates, known)
        return await self._answer(prompt, partial(_read_update, candidates, known))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        """What the user seems to think, feel and want; nothing if none of the messages is the user's."""
        if not has_user_message(excerpt):
            return _empty_answer(Mind("", None, ()))
        return await self._answer(partial(mind_prompt, excerpt, known), partial(_read_mind, excerpt))

    async def _answer(
        self, build: Callable[[int], StagePrompt], read: Callable[[str], tuple[T, Counts]]
    ) -> Answer[T]:
        prompt, response = await self._ask_within_limits(build)
        raw, usage = response.text[:MOST_RAW], _usage_of(response)
        try:
            _check_complete(response)
            value, counts = await asyncio.to_thread(read, response.text)
        except ExtractionError as error:
            error.raw_response = raw
            _add_usage(error, usage)
            raise
        return Answer(value, raw, usage, _answer_data({**prompt.counts, **counts}))

    async def _ask_within_limits(
        self, build: Callable[[int], StagePrompt]
    ) -> tuple[StagePrompt, ModelResponse]:
        """The response of the model. If the input is too long for it, half of the input is sent."""
        prompt = await self._build(build, self._max_input_tokens)
        try:
            return prompt, await self._client.ask(prompt.request)
        except TooLongError:
            prompt = await self._build(build, self._max_input_tokens // 2)
        try:
            return prompt, await self._client.ask(prompt.request)
        except TooLongError as error:
            raise ModelRefusedError(
                "the model rejects even half of the input as too long"
            ) from error.__cause__

    async def _build(self, build: Callable[[int], StagePrompt], budget: int) -> StagePrompt:
        # In a thread: quoting a long conversation would block the event loop.
        prompt = await asyncio.to_thread(build, budget)
        left_out = prompt.counts.get("messages_left_out", 0)
        if left_out:
            logger.warning("messages left out of a prompt, because the model accepts no more: %d", left_out)
        return prompt


class OpenAIExtractor(ModelExtractor):
    """Extracts with a model of OpenAI, or of another provider by its `base_url`.

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
        chat_model = OpenAIModel(
            model, owner=type(self).__name__, client=client, max_retries=_MAX_RETRIES, **options
        )
        super().__init__(chat_model, max_input_tokens)


class AnthropicExtractor(ModelExtractor):
    """Extracts with a model of Anthropic.

    Without a `client` it opens one, which reads `ANTHROPIC_API_KEY` from the environment unless `api_key` is
    given. A `client` that is passed in belongs to the caller and is never closed.
    """

    def __init__(
        self,
        model: str = DEFAULT_ANTHROPIC_MODEL,
        *,
        client: "AsyncAnthropic | None" = None,
        max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS,
        max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS,
        **options: Unpack[ModelOptions],
    ) -> None:
        options.setdefault("timeout", _TIMEOUT)
        chat_model = AnthropicModel(
            model,
            owner=type(self).__name__,
            client=client,
            max_retries=_MAX_RETRIES,
            max_output_tokens=max_output_tokens,
            **options,
        )
        super().__init__(chat_model, max_input_tokens)


def build_extractor(name: str) -> Extractor:
    """Build the extractor that a configuration names: `offline`, `openai:MODEL` or `anthropic:MODEL`."""
    if name == "offline":
        from ..offline import OfflineExtractor

        return OfflineExtractor()
    kind, _, model = name.partition(":")
    if kind not in ("openai", "anthropic") or not model:
        raise ValueError("a model must be offline, openai:NAME or anthropic:NAME")
    return OpenAIExtractor(model) if kind == "openai" else AnthropicExtractor(model)


# --- answers ---


def _empty_answer(value: T) -> Answer[T]:
    """The answer of a stage that needs no request."""
    return Answer(value, "", Usage(), _answer_data({}))


def _answer_data(counts: Mapping[str, int]) -> dict[str, Any]:
    return {"prompt_version": PROMPT_VERSION, **{name: count for name, count in counts.items() if count}}


def _join(answers: Sequence[Answer[Modification]]) -> Answer[Modification]:
    """Join the answers to the parts of a conversation. A candidate that occurs in several appears once."""
    if len(answers) == 1:
        return answers[0]
    values = [answer.value for answer in answers]
    candidates = {each.text: each for value in reversed(values) for each in reversed(value.candidates)}
    counts = Counter({"requests": len(answers)})
    for answer in answers:
        counts.update({name: count for name, count in answer.data.items() if isinstance(count, int)})
    return Answer(
        Modification(
            "\n".join(filter(None, (value.text for value in values))), tuple(candidates.values())[::-1]
        ),
        "\n".join(answer.raw_response for answer in answers)[:MOST_RAW],
        _sum([answer.usage for answer in answers]),
        _answer_data(counts),
    )


def _usage_of(response: ModelResponse) -> Usage:
    return Usage(response.usage.input_tokens, response.usage.output_tokens)


def _sum(usages: Sequence[Usage]) -> Usage:
    return Usage(
        sum(usage.prompt_tokens for usage in usages), sum(usage.completion_tokens for usage in usages)
    )


def _add_usage(error: ExtractionError, usage: Usage) -> None:
    """Record on an error the tokens that were paid for although the call failed."""
    error.prompt_tokens += usage.prompt_tokens
    error.completion_tokens += usage.completion_tokens


def _check_complete(response: ModelResponse) -> None:
    if response.is_refusal:
        raise ModelRefusedError("the model refused to answer")
    if not response.is_complete:
        raise UnusableAnswerError("the response was cut off at its length limit")


# --- from the text of a response to values ---


def _read_modification(excerpt: Excerpt, text: str) -> tuple[Modification, Counts]:
    notes = parse_modification(text)
    grounded = ground(notes.drafts, excerpt)
    counts = _dropped(notes.unreadable, grounded.without_evidence, grounded.about_assistant)
    return Modification(notes.text, grounded.candidates), counts


def _read_update(candidates: Sequence[Candidate], known: Sequence[Entry], text: str) -> tuple[Update, Counts]:
    decisions = decide(parse_update(text), candidates, [entry.content_id for entry in known])
    return Update(tuple(decisions)), {}


def _read_mind(excerpt: Excerpt, text: str) -> tuple[Mind, Counts]:
    notes = parse_mind(text)
    grounded = ground(notes.drafts, excerpt)
    counts = _dropped(notes.unreadable, grounded.without_evidence, grounded.about_assistant)
    return Mind(notes.text, notes.score, grounded.candidates), counts


def _dropped(unreadable: int, without_evidence: int, about_assistant: int) -> Counts:
    return {
        "dropped_unreadable": unreadable,
        "dropped_without_evidence": without_evidence,
        "dropped_about_assistant": about_assistant,
    }
