"""Filters of a search: validated values, and pure tests which documents match them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from ...errors import InvalidTypeError, InvalidValueError
from ...sql.columns import check_id
from ..conversation import Role, read_name, read_role
from ..entry import ContentType, check_type
from ..metadata import read_metadata
from ..tags import read_tags
from ..times import read_bound
from .corpus import Corpus
from .documents import Flags
from .records import NO_TIME

_DAWN = datetime(1, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class RequestedFilters:
    """The filters that a caller asks for. Tags and metadata are looked up in the database."""

    since: datetime | None = None
    until: datetime | None = None
    content_type: ContentType | None = None
    session_id: str | None = None
    role: Role | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def has_labels(self) -> bool:
        """Whether it asks for tags or metadata."""
        return bool(self.tags or self.metadata)

    @property
    def has_speaker(self) -> bool:
        """Whether it asks for a role or a name."""
        return self.role is not None or self.name is not None


def read_filters(
    *,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    content_type: object = None,
    session_id: object = None,
    role: object = None,
    name: object = None,
    tags: object = None,
    metadata: object = None,
) -> RequestedFilters:
    """Validate filters. An `InvalidTypeError` or `InvalidValueError` names the filter and the broken rule."""
    first, last = read_bound("since", since, is_end=False), read_bound("until", until, is_end=True)
    if first is not None and last is not None and first > last:
        raise InvalidValueError("since must not be later than until")
    return RequestedFilters(
        first,
        last,
        None if content_type is None else check_type(content_type),
        None if session_id is None else check_id("session_id", session_id),
        None if role is None else read_role("role", role),
        read_name("name", name),
        read_tags("tags", tags),
        read_metadata("metadata", metadata),
    )


def check_chance(name: str, given: object) -> float:
    """Check a chance such as the lowest score of a hit: a number from 0 to 1; `None` is 0."""
    if given is None:
        return 0.0
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidTypeError(f"{name} must be a number, not {type(given).__name__}")
    if math.isnan(given) or not 0 <= given <= 1:
        raise InvalidValueError(f"{name} must be from 0 to 1, and it is {given:g}")
    return float(given)


@dataclass(frozen=True)
class SearchFilter:
    """The documents that a search may return. Each condition is optional, and all must hold."""

    since: datetime | None = None
    until: datetime | None = None
    kind: str | None = None
    """The type of an entry."""
    role: str | None = None
    """The role of the speaker of a message."""
    speaker: str | None = None
    """The name of the speaker of a message, or the role where no name is given."""
    sessions: frozenset[str] | None = None
    """The conversations to search."""
    ids: frozenset[str] | None = None
    """The documents to search."""
    left_out: frozenset[str] = frozenset()
    """Documents that are not searched."""

    @property
    def is_empty(self) -> bool:
        """Whether every document matches."""
        return self == SearchFilter()

    def matches(self, corpus: Corpus) -> Flags:
        """Whether all conditions hold for each document of a corpus."""
        found = np.ones(len(corpus), np.bool_)
        for name, wanted in (("kind", self.kind), ("role", self.role), ("speaker", self.speaker)):
            if wanted is not None:
                found &= corpus.rows_where(name, {wanted})
        if self.sessions is not None:
            found &= corpus.rows_where("session", self.sessions) & corpus.column("has_session")
        if self.ids is not None:
            found &= corpus.rows_with_ids(self.ids)
        if self.left_out:
            found &= ~corpus.rows_with_ids(self.left_out)
        return found & self._are_within(corpus) if self.since or self.until else found

    def _are_within(self, corpus: Corpus) -> Flags:
        """Whether the time of each document is known and within the bounds."""
        times = corpus.column("utc_micros")
        within: Flags = corpus.column("offset") != NO_TIME
        if self.since is not None:
            within &= times >= (self.since - _DAWN) // _MICROSECOND
        if self.until is not None:
            within &= times <= (self.until - _DAWN) // _MICROSECOND
        return within
