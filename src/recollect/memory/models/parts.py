"""A conversation that is too long for one request, in parts: every message is in one of them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ..conversation import Message
from ..pipeline.stages import Excerpt
from .prompting import room_for_data
from .quoting import tokens_of_message

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
