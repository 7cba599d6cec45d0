"""Turns: a turn starts at a user message and runs to the next; what stands before the first is turn 0."""

from collections.abc import Sequence
from itertools import pairwise

from .shapes import Item, is_user_message


def turn_starts(items: Sequence[Item]) -> list[int]:
    """The positions of the user messages: where turn 1, 2, … start."""
    return [index for index, item in enumerate(items) if is_user_message(item)]


def split_turns(items: Sequence[Item]) -> list[list[Item]]:
    """The items of each turn; index 0 holds what stands before the first user message, perhaps nothing."""
    edges = [0, *turn_starts(items), len(items)]
    return [list(items[start:end]) for start, end in pairwise(edges)]
