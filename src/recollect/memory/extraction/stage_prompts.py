"""The prompts of the three stages: instructions from versioned files, and quoted data within a budget."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from string import Template
from typing import Any

from ...items import estimate_text_tokens
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
"""Which prompts are used: the name of their folder."""

_BOUNDARY = "----- data -----\n"


@dataclass(frozen=True)
class StageFiles:
    """What stands in the files of a stage."""

    instructions: str
    template: Template
    schema: Mapping[str, Any]
    tokens: int
    """About how many tokens all of that is."""


@dataclass(frozen=True)
class Prompt:
    """A request to a model: how it is to work, on what, and in which form it is to answer."""

    stage: Stage
    instructions: str
    text: str = field(repr=False)
    schema: Mapping[str, Any]
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was shortened or left out to make it fit."""


@cache
def stage_files(stage: Stage, version: str = PROMPT_VERSION) -> StageFiles:
    """The prompt and the schema of a stage, read once."""
    folder = files(__package__).joinpath("prompts", version)
    written = folder.joinpath(f"{stage}.txt").read_text(encoding="utf-8")
    schema = folder.joinpath(f"{stage}.json").read_text(encoding="utf-8")
    instructions, template = written.split(_BOUNDARY)
    tokens = estimate_text_tokens(written) + estimate_text_tokens(schema)
    return StageFiles(instructions.strip(), Template(template.strip()), json.loads(schema), tokens)


def modification_prompt(excerpt: Excerpt, budget: int) -> Prompt:
    """What is new or changed in the messages?"""
    room = room_for_data("modification", budget)
    messages = quote_messages(excerpt, number_messages(excerpt), room)
    earlier = quote_earlier(excerpt, room - messages.tokens)
    counts = {"messages_shortened": messages.shortened, "messages_left_out": messages.left_out}
    return _prompt("modification", counts, messages=messages.text, earlier=earlier.text)


def update_prompt(
    excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry], budget: int
) -> Prompt:
    """What becomes of each candidate? Of the messages, those are told that the candidates cite."""
    room = room_for_data("update", budget)
    quoted = quote_candidates(candidates, room // 2)
    entries = quote_known(known, room - quoted.tokens)
    cited = {message_id for candidate in candidates for message_id in candidate.evidence}
    numbered = [each for each in number_messages(excerpt) if each[1].message_id in cited]
    messages = quote_messages(excerpt, numbered, room - quoted.tokens - entries.tokens)
    counts = {"candidates_left_out": quoted.left_out, "known_left_out": entries.left_out}
    return _prompt("update", counts, candidates=quoted.text, known=entries.text, messages=messages.text)


def mind_prompt(excerpt: Excerpt, known: Sequence[Entry], budget: int) -> Prompt:
    """What does the user seem to think, feel and want?"""
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
    """The tokens that a request of a stage has for what is quoted."""
    return budget - stage_files(stage).tokens


def _prompt(stage: Stage, counts: Mapping[str, int], **quoted: str) -> Prompt:
    its = stage_files(stage)
    return Prompt(stage, its.instructions, its.template.substitute(quoted), its.schema, counts)


_SHARE = 0.75  # of the room in a request; the rest is for what was said before
_MOST_PARTS = 8  # in a conversation that is longer than these hold, messages are shortened
_MOST_EARLIER = 20  # messages before a part that are looked at


def split_excerpt(excerpt: Excerpt, budget: int) -> list[Excerpt]:
    """The excerpt in as few parts as fit into requests of so many tokens, each after what was said before.

    Parts in which the user says nothing are left out.
    """
    sizes = [tokens_of_message(excerpt, message) for message in excerpt.messages]
    room = max(_SHARE * room_for_data("modification", budget), sum(sizes) / _MOST_PARTS)
    starts = [*_starts(sizes, room), len(sizes)]
    parts = [_part(excerpt, *edges) for edges in pairwise(starts)]
    return [part for part in parts if is_user_heard(part)]


def is_user_heard(excerpt: Excerpt) -> bool:
    """Whether the user says anything."""
    return any(excerpt.is_users(message) for message in excerpt.messages)


def _starts(sizes: Sequence[int], room: float) -> list[int]:
    """Where parts begin."""
    starts, left = [0], room
    for place, size in enumerate(sizes):
        if size > left and place > starts[-1]:
            starts.append(place)
            left = room
        left -= size
    return starts


def _part(excerpt: Excerpt, start: int, end: int) -> Excerpt:
    before: tuple[Message, ...] = (*excerpt.before, *excerpt.messages[max(0, start - _MOST_EARLIER) : start])
    return replace(excerpt, messages=excerpt.messages[start:end], before=before)
