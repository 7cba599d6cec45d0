"""The stages of the pipeline, done by a model of OpenAI or Anthropic: one request answers for all of them."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, cast, get_args

from ...errors import ExtractionError, ModelRefusedError, UnusableAnswerError
from ...extras import DEFAULT_ANTHROPIC_MODEL
from ...models import (
    AnthropicModel,
    ModelClient,
    ModelOptions,
    ModelResponse,
    OpenAIModel,
    OpenAIResponsesModel,
    UsesModel,
)
from ...models.anthropic import DEFAULT_MAX_OUTPUT_TOKENS
from ...models.client import DEFAULT_MAX_INPUT_TOKENS, MOST_RAW
from ...models.errors import TooLongError
from ..entry import Entry
from ..offline.setting import without_play
from ..pipeline.stages import Answer, Candidate, Excerpt, Extractor, Mind, Modification, Update, Usage
from .candidates import Trust, to_candidates, to_mind
from .decisions import decide
from .prompt import (
    PROMPT_VERSION,
    Application,
    ExtractionPrompt,
    extraction_prompt,
    inference_prompt,
    split_excerpt,
)
from .responses import parse_response

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)

T = TypeVar("T")
Counts = dict[str, int]
Found = list[Candidate]

_LEAST_INPUT_TOKENS = 4_000  # the instructions alone take a quarter of that
_TIMEOUT = 60.0  # seconds
_MAX_RETRIES = 0  # the pipeline retries a failed run; retries of the client would multiply its attempts
_MOST_SUMMARIZED = 50  # candidates in the summary of a stage
_MIND = "mind"
_INFERS_AFTER = 8  # new entries
_OPENAI_APIS: dict[str, type[ModelClient]] = {
    "chat_completions": OpenAIModel,
    "responses": OpenAIResponsesModel,
}


class ExtractorOptions(ModelOptions, total=False):
    """How to reach a model, how far to trust it, and what the application wants to be noted."""

    trust: Trust
    """`high` takes dates and replacements as the model names them; `low`, for small models, checks them."""
    instructions: str
    """Further instructions, in words."""
    include: Sequence[str]
    """What else is to be noted, such as `"favourite teams"`."""
    exclude: Sequence[str]
    """What is never to be noted, such as `"salaries"`."""
    kinds: Mapping[str, str]
    """Kinds of the application with their descriptions. Their entries are of type `profile`, with the kind in
    `content_data`."""
    infers_after: int
    """After how many new entries a run of its own infers what the user wants, worries about and values: 8,
    or 0 for never. With low trust, it is never if this is not given."""


class ModelExtractor(UsesModel):
    """Runs the stages by asking a model once, or once for each part of a conversation that is too long."""

    reads_known = True

    def __init__(
        self,
        client: ModelClient,
        max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS,
        trust: Trust = "high",
        application: Application | None = None,
        infers_after: int | None = None,
    ) -> None:
        super().__init__(client, max_input_tokens=max_input_tokens, least_input_tokens=_LEAST_INPUT_TOKENS)
        if trust not in get_args(Trust):
            raise ValueError(f"trust must be one of {', '.join(get_args(Trust))}")
        self._trust = trust
        self.infers_after = (
            (_INFERS_AFTER if trust == "high" else 0) if infers_after is None else infers_after
        )
        self._application = application or Application()

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """What is new or changed in the messages, with the mind; nothing if none of them is the user's."""
        if self._trust == "low":  # a small model takes a part in a play for the user's own life
            excerpt = await asyncio.to_thread(without_play, excerpt)
        answer = await self._extract(excerpt)
        facts = tuple(each for each in answer.value if each.content_type != _MIND)
        mind = _mind_of(answer.value)
        return _with_value(answer, Modification(_summarize(facts), facts, mind))

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002  # part of the protocol, and not needed here
        candidates: Sequence[Candidate],
        known: Sequence[Entry],
    ) -> Answer[Update]:
        """The decision on each candidate, by rule: the model has said already what a candidate replaces."""
        if all(candidate.is_trusted for candidate in candidates):
            return Answer(Update(()), data=_answer_data({}))
        decisions = await asyncio.to_thread(lambda: tuple(decide(candidates, known)))
        return Answer(Update(decisions), data=_answer_data({}))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        """What known entries together imply that the user wants, worries about, values, or how they work."""
        if not known:
            return Answer(_mind_of(()), data=_answer_data({}))
        answer = await self._ask(
            lambda budget: inference_prompt(excerpt, known, budget),
            lambda text: _read_mind(known, text),
        )
        inferences, ended = answer.value
        return _with_value(answer, replace(_mind_of(inferences), ended=ended))

    async def _extract(self, excerpt: Excerpt) -> Answer[Found]:
        """The candidates of all kinds."""
        answers: list[Answer[Found]] = []
        for part in await asyncio.to_thread(split_excerpt, excerpt, self._max_input_tokens):
            try:
                answers.append(await self._ask(partial(self._prompt, part), partial(self._read, part)))
            except ExtractionError as error:
                _add_usage(error, _sum([answer.usage for answer in answers]))
                raise
        return _join(answers)

    async def _ask(
        self, build: Callable[[int], ExtractionPrompt], read: Callable[[str], tuple[T, Counts]]
    ) -> Answer[T]:
        """What is read in the response to a prompt, which is built for so many tokens."""
        prompt, response = await self._ask_within_limits(build)
        raw, usage = response.text[:MOST_RAW], _usage_of(response)
        try:
            _check_complete(response)
            found, counts = await asyncio.to_thread(read, response.text)
        except ExtractionError as error:
            error.raw_response = raw
            _add_usage(error, usage)
            raise
        return Answer(found, raw, usage, _answer_data({**prompt.counts, **counts}))

    async def _ask_within_limits(
        self, build: Callable[[int], ExtractionPrompt]
    ) -> tuple[ExtractionPrompt, ModelResponse]:
        """The response of the model. If the input is too long for it, half of the input is sent."""
        # In a thread: quoting a long conversation would block the event loop.
        prompt = await asyncio.to_thread(build, self._max_input_tokens)
        try:
            return prompt, await self._client.ask(prompt.request)
        except TooLongError:
            prompt = await asyncio.to_thread(build, self._max_input_tokens // 2)
        try:
            return prompt, await self._client.ask(prompt.request)
        except TooLongError as error:
            raise ModelRefusedError(
                "the model rejects even half of the input as too long"
            ) from error.__cause__

    def _prompt(self, excerpt: Excerpt, budget: int) -> ExtractionPrompt:
        prompt = extraction_prompt(excerpt, budget, self._application)
        left_out = prompt.counts.get("messages_left_out", 0)
        if left_out:
            logger.warning("messages left out of a prompt, because the model accepts no more: %d", left_out)
        return prompt

    def _read(self, excerpt: Excerpt, text: str) -> tuple[Found, Counts]:
        """The candidates in the text of a response, and counts of what was not read."""
        parsed = parse_response(text)
        counts = {"dropped_unreadable": parsed.unreadable, "dropped_too_many": parsed.too_many}
        return to_candidates(parsed.drafts, excerpt, self._trust, self._application.kinds), counts


class OpenAIExtractor(ModelExtractor):
    """Extracts with a model of OpenAI, or of another provider by its `base_url`.

    `api` is the API of the endpoint: `chat_completions`, which most providers have, or `responses`.

    Without a `client` it opens one, which reads `OPENAI_API_KEY` and `OPENAI_BASE_URL` from the environment
    unless `api_key` and `base_url` are given. A `client` that is passed in belongs to the caller and is never
    closed.
    """

    def __init__(
        self,
        model: str = "gpt-4o-mini",
        *,
        api: Literal["chat_completions", "responses"] = "chat_completions",
        client: "AsyncOpenAI | None" = None,
        max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS,
        **options: Unpack[ExtractorOptions],
    ) -> None:
        options.setdefault("timeout", _TIMEOUT)
        learning, reach = _split(options)
        if api not in _OPENAI_APIS:
            raise ValueError(f"api must be one of {', '.join(_OPENAI_APIS)}")
        chat_model = _OPENAI_APIS[api](
            model, owner=type(self).__name__, client=client, max_retries=_MAX_RETRIES, **reach
        )
        super().__init__(chat_model, max_input_tokens, **learning)


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
        **options: Unpack[ExtractorOptions],
    ) -> None:
        options.setdefault("timeout", _TIMEOUT)
        learning, reach = _split(options)
        chat_model = AnthropicModel(
            model,
            owner=type(self).__name__,
            client=client,
            max_retries=_MAX_RETRIES,
            max_output_tokens=max_output_tokens,
            **reach,
        )
        super().__init__(chat_model, max_input_tokens, **learning)


def build_extractor(name: str, **options: Unpack[ExtractorOptions]) -> Extractor:
    """Build the extractor that a configuration names: `offline`, `openai:MODEL` or `anthropic:MODEL`.

    The options are those of a model; learning by rule has none.
    """
    if name == "offline":
        from ..offline import OfflineExtractor

        return OfflineExtractor()
    kind, _, model = name.partition(":")
    if kind not in ("openai", "anthropic") or not model:
        raise ValueError("a model must be offline, openai:NAME or anthropic:NAME")
    extractor = OpenAIExtractor if kind == "openai" else AnthropicExtractor
    return extractor(model, **options)


class _Learning(TypedDict):
    trust: Trust
    application: Application
    infers_after: int | None


def _split(options: ExtractorOptions) -> tuple[_Learning, ModelOptions]:
    """How to learn with a model, and how to reach it."""
    application = Application(
        options.pop("instructions", ""),
        tuple(options.pop("include", ())),
        tuple(options.pop("exclude", ())),
        dict(options.pop("kinds", {})),
    )
    learning = _Learning(
        trust=options.pop("trust", "high"),
        application=application,
        infers_after=options.pop("infers_after", None),
    )
    return learning, cast(ModelOptions, options)


# --- answers ---


def _answer_data(counts: Mapping[str, int]) -> dict[str, Any]:
    return {"prompt_version": PROMPT_VERSION, **{name: count for name, count in counts.items() if count}}


def _with_value(answer: Answer[Any], value: T) -> Answer[T]:
    return Answer(value, answer.raw_response, answer.usage, answer.data)


def _join(answers: Sequence[Answer[Found]]) -> Answer[Found]:
    """Join the answers to the parts of a conversation. A candidate that occurs in several appears once."""
    if len(answers) == 1:
        return answers[0]
    candidates = {each.text: each for answer in reversed(answers) for each in reversed(answer.value)}
    counts = Counter({"requests": len(answers)})
    for answer in answers:
        counts.update({name: count for name, count in answer.data.items() if isinstance(count, int)})
    return Answer(
        list(candidates.values())[::-1],
        "\n".join(answer.raw_response for answer in answers)[:MOST_RAW],
        _sum([answer.usage for answer in answers]),
        _answer_data(counts),
    )


def _read_mind(known: Sequence[Entry], text: str) -> tuple[tuple[list[Candidate], tuple[str, ...]], Counts]:
    """The inferences in a response, the entries that it ends, and counts of what was not read."""
    parsed = parse_response(text)
    counts = {"dropped_unreadable": parsed.unreadable, "dropped_too_many": parsed.too_many}
    return to_mind(parsed.drafts, known), counts


def _mind_of(found: Sequence[Candidate]) -> Mind:
    """The part of an answer about the mind. Its confidence is the mean of the candidates' confidence."""
    minds = tuple(each for each in found if each.content_type == _MIND)
    mean = sum(each.confidence for each in minds) / len(minds) if minds else None
    return Mind(_summarize(minds), mean and round(mean, 2), minds)


def _summarize(candidates: Sequence[Candidate]) -> str:
    return "\n".join(f"- {candidate.text}" for candidate in candidates[:_MOST_SUMMARIZED])


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
