"""How long an entry holds: until it expires, and with less trust the longer it was not said again.

Fading never deletes an entry. It marks it as doubtful, so that people see it and `recall` puts it last.
"""

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from .times import read_bound

if TYPE_CHECKING:
    from .entry import ContentType, Entry

State: TypeAlias = Literal["current", "doubtful", "expired", "retired", "rejected"]
STATES: tuple[State, ...] = get_args(State)

DOUBTFUL_BELOW = 0.35
"""An entry with less trust than this is doubtful."""
_HALF_LIVES: dict["ContentType", timedelta] = {
    "profile": timedelta(days=365),
    "instruction": timedelta(days=365),
    "mind": timedelta(days=90),
}
"""The time in which the trust in an entry that was said once is halved. An event does not fade."""


def is_expired(entry: "Entry", at: datetime) -> bool:
    """Whether an entry has expired at a time."""
    return entry.expires_at is not None and entry.expires_at <= at


def trust_in(entry: "Entry", at: datetime) -> float:
    """The trust in an entry at a time, from 0 to 1.

    It is the confidence, halved for each half-life since the entry was last said or confirmed. The half-life
    is as many times longer as messages say it. An event, and what a person wrote, does not fade.
    """
    half_life = _half_life_of(entry)
    if half_life is None or entry.said_at is None:
        return entry.confidence
    age = max(at - _last_said(entry, entry.said_at), timedelta())
    return entry.confidence * math.pow(0.5, age / half_life)


def _half_life_of(entry: "Entry") -> timedelta | None:
    """The time in which the trust in an entry is halved; `None` if it does not fade."""
    half_life = _HALF_LIVES.get(entry.content_type)
    if half_life is None or entry.is_edited:
        return None
    return half_life * max(1, len({each.message_id for each in entry.evidence}))


def _last_said(entry: "Entry", said_at: datetime) -> datetime:
    return max(said_at, entry.last_confirmed_at or said_at)


def doubtful_from(entry: "Entry") -> datetime | None:
    """The time from which an entry is doubtful, if it is not said again; `None` if it never will be."""
    half_life = _half_life_of(entry)
    if half_life is None or entry.said_at is None:
        return None
    halvings = math.log2(max(entry.confidence, DOUBTFUL_BELOW) / DOUBTFUL_BELOW)
    try:
        return _last_said(entry, entry.said_at) + half_life * halvings
    except OverflowError:
        return None


def state_of(entry: "Entry", at: datetime) -> State:
    """The state of an entry at a time. Only `current` and `doubtful` entries are searched and recalled."""
    if entry.rejected_at is not None:
        return "rejected"
    if entry.retired_at is not None:
        return "retired"
    if is_expired(entry, at):
        return "expired"
    return "doubtful" if trust_in(entry, at) < DOUBTFUL_BELOW else "current"


def read_expiry(name: str, given: object) -> datetime | None:
    """Parse the time at which an entry expires. A day, a month or a year is included completely."""
    return read_bound(name, given, is_end=True)


def parse_expiry(given: str | None) -> datetime | None:
    """The expiry that an extractor found. A text that is no time counts as none: the entry is kept."""
    try:
        return read_expiry("expires_at", given)
    except ValueError:
        return None
