"""The three stages of the pipeline, done by a model."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ...errors import ExtractionError, ModelRefusedError, UnusableAnswerError
from ..entry import Entry
from ..pipeline.stages import Answer, Candidate, Excerpt, Extractor, Mind, Modification, Update, Usage
from .asking import MOST_RAW, AsksModel, Said
from .faults import TooLongError
from .grounding import decide, ground
from .responses import parse_mind, parse_modification, parse_update
from .stage_prompts import (
    PROMPT_VERSION,
    Prompt,
    is_user_heard,
    mind_prompt,
    modification_prompt,
    split_excerpt,
    update_prompt,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")
Counts = dict[str, int]


class ModelExtractor(AsksModel):
    """Does the three stages by asking a model."""

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """What is new or changed in the messages; nothing where the user said nothing.

        A conversation that is too long for one request is given to the model in parts.
        """
        answers: list[Answer[Modification]] = []
        for part in await asyncio.to_thread(split_excerpt, excerpt, self._max_input_tokens):
            try:
                answer = await self._answer(partial(modification_prompt, part), partial(_modification, part))
            except ExtractionError as error:
                _add_usage(error, _sum([answer.usage for answer in answers]))
                raise
            answers.append(answer)
        return _joined(answers) if answers else _unasked(Modification("", ()))

    async def update(
        self, excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry]
    ) -> Answer[Update]:
        """What becomes of each candidate; where nothing is known of the same matters, all are added."""
        if not candidates or not known:
            return _unasked(Update(()))
        prompt = partial(update_prompt, excerpt, candidates, known)
        return await self._answer(prompt, partial(_update, candidates, known))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        """What the user seems to think, feel and want; nothing where the user said nothing."""
        if not is_user_heard(excerpt):
            return _unasked(Mind("", None, ()))
        return await self._answer(partial(mind_prompt, excerpt, known), partial(_mind, excerpt))

    async def _answer(
        self, build: Callable[[int], Prompt], read: Callable[[str], tuple[T, Counts]]
    ) -> Answer[T]:
        prompt, said = await self._ask_within_limits(build)
        raw = said.text[:MOST_RAW]
        try:
            _check_whole(said)
            value, counts = await asyncio.to_thread(read, said.text)
        except ExtractionError as error:
            error.raw_response = raw
            _add_usage(error, said.usage)
            raise
        return Answer(value, raw, said.usage, _told({**prompt.counts, **counts}))

    async def _ask_within_limits(self, build: Callable[[int], Prompt]) -> tuple[Prompt, Said]:
        """What the model says; if all of it was too much for it, what it says to half."""
        prompt = await self._built(build, self._max_input_tokens)
        try:
            return prompt, await self._ask(prompt)
        except TooLongError:
            prompt = await self._built(build, self._max_input_tokens // 2)
        try:
            return prompt, await self._ask(prompt)
        except TooLongError as error:
            raise ModelRefusedError("the model takes not even half of the input") from error.__cause__

    async def _built(self, build: Callable[[int], Prompt], budget: int) -> Prompt:
        # In a thread: a long conversation is quoted for a while, and nobody else should wait.
        prompt = await asyncio.to_thread(build, budget)
        left_out = prompt.counts.get("messages_left_out", 0)
        if left_out:
            logger.warning("%d messages were left out, for the model does not take so many", left_out)
        return prompt


def _unasked(value: T) -> Answer[T]:
    return Answer(value, "", Usage(), _told({}))


def _told(counts: Mapping[str, int]) -> dict[str, Any]:
    return {"prompt_version": PROMPT_VERSION, **{name: count for name, count in counts.items() if count}}


def _joined(answers: Sequence[Answer[Modification]]) -> Answer[Modification]:
    """The answers to the parts of a conversation as one; what is said in several of them is said once."""
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
        _told(counts),
    )


def _sum(usages: Sequence[Usage]) -> Usage:
    return Usage(
        sum(usage.prompt_tokens for usage in usages), sum(usage.completion_tokens for usage in usages)
    )


def _add_usage(error: ExtractionError, usage: Usage) -> None:
    """Keep what was paid for with an error, although it was no use."""
    error.prompt_tokens += usage.prompt_tokens
    error.completion_tokens += usage.completion_tokens


def _check_whole(said: Said) -> None:
    if said.is_refusal:
        raise ModelRefusedError("the model refused to answer")
    if not said.is_whole:
        raise UnusableAnswerError("the answer was cut off for its length")


# --- from what the model said to values ---


def _modification(excerpt: Excerpt, text: str) -> tuple[Modification, Counts]:
    notes = parse_modification(text)
    grounded = ground(notes.drafts, excerpt)
    counts = _dropped(notes.unreadable, grounded.without_evidence, grounded.about_assistant)
    return Modification(notes.text, grounded.candidates), counts


def _update(candidates: Sequence[Candidate], known: Sequence[Entry], text: str) -> tuple[Update, Counts]:
    decisions = decide(parse_update(text), candidates, [entry.content_id for entry in known])
    return Update(tuple(decisions)), {}


def _mind(excerpt: Excerpt, text: str) -> tuple[Mind, Counts]:
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


def build_extractor(name: str) -> Extractor:
    """Build the extractor that a configuration names: `offline`, `openai:MODEL` or `anthropic:MODEL`."""
    if name == "offline":
        from ..offline import OfflineExtractor

        return OfflineExtractor()
    kind, _, model = name.partition(":")
    if kind not in ("openai", "anthropic") or not model:
        raise ValueError("a model must be offline, openai:NAME or anthropic:NAME")
    from . import AnthropicExtractor, OpenAIExtractor

    return OpenAIExtractor(model) if kind == "openai" else AnthropicExtractor(model)
