"""The prompts of the three stages: instructions from versioned files, and quoted data within a token budget.

A conversation that is too long for one request is split into parts; every message is in one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ...models import ModelRequest, ResponseSchema
from ...models.prompts import PromptTemplate, load_prompt
from ..conversation import Message
from ..entry import Entry
from ..pipeline.stages import Candidate, Excerpt, Stage
from .quotes import (
    number_messages,
    quote_candidates,
    quote_earlier,
    quote_known,
    quote_messages,
    tokens_of_message,
)

PROMPT_VERSION = "v1"
"""The folder of the prompts in use."""

_SHARE = 0.75  # of the room in a request; the rest is for the messages before the part
_MOST_PARTS = 8  # messages of a conversation that is longer than these parts are shortened
_MOST_EARLIER = 20  # messages before a part that may be quoted


@dataclass(frozen=True)
class StagePrompt:
    """The request of a stage, and counts of what was shortened or left out to make it fit."""

    request: ModelRequest
    counts: Mapping[str, int] = field(default_factory=dict)


def stage_template(stage: Stage) -> PromptTemplate:
    """The prompt and the schema of a stage."""
    return load_prompt(__package__, PROMPT_VERSION, stage)


def modification_prompt(excerpt: Excerpt, budget: int) -> StagePrompt:
    """Ask what is new or changed in the messages."""
    room = room_for_data("modification", budget)
    messages = quote_messages(excerpt, number_messages(excerpt), room)
    earlier = quote_earlier(excerpt, room - messages.tokens)
    counts = {"messages_shortened": messages.shortened, "messages_left_out": messages.left_out}
    return _prompt("modification", counts, messages=messages.text, earlier=earlier.text)


def update_prompt(
    excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry], budget: int
) -> StagePrompt:
    """Ask what to do with each candidate. Only the messages that the candidates cite are quoted."""
    room = room_for_data("update", budget)
    quoted = quote_candidates(candidates, room // 2)
    entries = quote_known(known, room - quoted.tokens)
    cited = {message_id for candidate in candidates for message_id in candidate.evidence}
    numbered = [each for each in number_messages(excerpt) if each[1].message_id in cited]
    messages = quote_messages(excerpt, numbered, room - quoted.tokens - entries.tokens)
    counts = {"candidates_left_out": quoted.left_out, "known_left_out": entries.left_out}
    return _prompt("update", counts, candidates=quoted.text, known=entries.text, messages=messages.text)


def mind_prompt(excerpt: Excerpt, known: Sequence[Entry], budget: int) -> StagePrompt:
    """Ask what the user seems to think, feel and want."""
    room = room_for_data("mind", budget)
    entries = quote_known(known, room // 3)
    messages = quote_messages(excerpt, number_messages(excerpt), room - entries.tokens)
    earlier = quote_earlier(excerpt, room - entries.tokens - messages.tokens)
    counts = {
        "messages_shortened": messages.shortened,
        "messages_left_out": messages.left_out,
        "known_left_out": entries.left_out,
    }
    return _prompt("mind", counts, known=entries.text, messages=messages.text, earlier=earlier.text)


def room_for_data(stage: Stage, budget: int) -> int:
    """The tokens that a request of a stage has for quoted data."""
    return budget - stage_template(stage).tokens


def _prompt(stage: Stage, counts: Mapping[str, int], **quoted: str) -> StagePrompt:
    template = stage_template(stage)
    schema = None if template.schema is None else ResponseSchema(stage, template.schema)
    text = template.template.substitute(quoted)
    return StagePrompt(ModelRequest(template.instructions, text, schema), counts)


# --- parts of a long conversation ---


def split_excerpt(excerpt: Excerpt, budget: int) -> list[Excerpt]:
    """Split an excerpt into as few parts as fit into requests of `budget` tokens.

    Each part comes with the messages before it. Parts without a message of the user are left out.
    """
    sizes = [tokens_of_message(excerpt, message) for message in excerpt.messages]
    room = max(_SHARE * room_for_data("modification", budget), sum(sizes) / _MOST_PARTS)
    starts = [*_starts(sizes, room), len(sizes)]
    parts = [_part(excerpt, *edges) for edges in pairwise(starts)]
    return [part for part in parts if has_user_message(part)]


def has_user_message(excerpt: Excerpt) -> bool:
    """Whether any message is the user's."""
    return any(excerpt.is_users(message) for message in excerpt.messages)


def _starts(sizes: Sequence[int], room: float) -> list[int]:
    """The index of the first message of each part."""
    starts, left = [0], room
    for index, size in enumerate(sizes):
        if size > left and index > starts[-1]:
            starts.append(index)
            left = room
        left -= size
    return starts


def _part(excerpt: Excerpt, start: int, end: int) -> Excerpt:
    before: tuple[Message, ...] = (*excerpt.before, *excerpt.messages[max(0, start - _MOST_EARLIER) : start])
    return replace(excerpt, messages=excerpt.messages[start:end], before=before)
