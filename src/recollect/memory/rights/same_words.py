"""Which of the items of a session are a message, where others say the same: pure functions.

Sessions and logs do not say of what message an item is, and do not hold the same: a message may never have
come into them, and a model says more than its answer. So equal ones are counted, and where the counts differ
it is what stands around them that tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..conversation import Message

_AROUND = 3  # messages before, and after


class Saying(NamedTuple):
    """Who said what, as far as it is compared."""

    role: str | None
    words: str


def saying_of(role: str | None, text: str) -> Saying:
    """Who said what. What is made of several parts is the same, however these were put together."""
    # Halves of characters are replaced when a message is put into a session.
    return Saying(role, text.replace("\n", "").encode("utf-8", "replace").decode())


@dataclass(frozen=True)
class Told:
    """A message among all of its conversation."""

    sayings: tuple[Saying, ...]
    place: int

    @property
    def saying(self) -> Saying:
        """The message itself."""
        return self.sayings[self.place]


def told_among(messages: Sequence[Message], message_id: str | None) -> Told | None:
    """A message among all of its conversation, by its id; `None` if it is not among them."""
    sayings = tuple(saying_of(message.role, message.content) for message in messages)
    ids = [message.message_id for message in messages]
    return Told(sayings, ids.index(message_id)) if message_id in ids else None


def find_told(told: Told, held: Sequence[Saying]) -> list[int]:
    """The places where a message stands among what is held in the same order.

    That is one place at most, or each where it was said, if no other message says the same: then nobody may
    find these words any more.
    """
    equal = _places_of(told.saying, held)
    twins = _places_of(told.saying, told.sayings)
    if len(twins) == 1 or not equal:
        return equal
    number = twins.index(told.place)
    if len(equal) == len(twins):
        return [equal[number]]
    alike = {place: _likeness(told, held, place) for place in equal}
    if not any(alike.values()):
        return equal[number : number + 1]
    # Of those that are as much alike, the one that stands where it is to be expected.
    return [max(equal, key=lambda place: (alike[place], -abs(equal.index(place) - number)))]


def _places_of(saying: Saying, among: Sequence[Saying]) -> list[int]:
    return [place for place, other in enumerate(among) if other == saying]


def _likeness(told: Told, held: Sequence[Saying], place: int) -> int:
    """How many around a place are those that stand around the message."""
    steps = [step for step in range(-_AROUND, _AROUND + 1) if step]
    return sum(
        _at(told.sayings, told.place + step) == said
        for step in steps
        if (said := _at(held, place + step)) is not None
    )


def _at(sayings: Sequence[Saying], place: int) -> Saying | None:
    return sayings[place] if 0 <= place < len(sayings) else None
