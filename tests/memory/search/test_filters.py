"""Filters are validated, and match a document by all of their conditions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from recollect.memory.metadata import MOST_BYTES
from recollect.memory.search.corpus import Corpus
from recollect.memory.search.documents import Document
from recollect.memory.search.filters import (
    RequestedFilters,
    SearchFilter,
    check_chance,
    read_filters,
)

NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)
SAID = Document("c/m", "I sail.", "Ada", "c", 0, NOON, kind="turn", role="user")


def matches(wanted: SearchFilter, document: Document) -> bool:
    other = Document("c/o", "I row.", "Ada", "c", 1, NOON, kind="turn", role="user")
    return bool(wanted.matches(Corpus([other, document]))[1])


@pytest.mark.parametrize(
    "wanted",
    [
        SearchFilter(),
        SearchFilter(since=NOON, until=NOON),
        SearchFilter(kind="turn", role="user", speaker="Ada"),
        SearchFilter(sessions=frozenset({"c", "d"}), ids=frozenset({"c/m"})),
    ],
)
def test_a_document_matches_if_all_conditions_hold(wanted: SearchFilter) -> None:
    assert matches(wanted, SAID)


@pytest.mark.parametrize(
    "wanted",
    [
        SearchFilter(since=NOON.replace(hour=13)),
        SearchFilter(until=NOON.replace(hour=11)),
        SearchFilter(kind="profile"),
        SearchFilter(role="assistant"),
        SearchFilter(speaker="Bo"),
        SearchFilter(sessions=frozenset()),
        SearchFilter(ids=frozenset({"other"})),
        SearchFilter(role="user", speaker="Bo"),
    ],
)
def test_a_document_does_not_match_if_one_condition_fails(wanted: SearchFilter) -> None:
    assert not matches(wanted, SAID)
    assert not wanted.is_empty


def test_a_document_without_a_time_matches_no_bound() -> None:
    timeless = Document("e", "The user sails.")
    assert matches(SearchFilter(), timeless)
    assert not matches(SearchFilter(since=NOON), timeless)
    assert not matches(SearchFilter(until=NOON), timeless)


def test_bounds_are_compared_as_moments_whatever_the_zones() -> None:
    later = NOON.replace(tzinfo=timezone(timedelta(hours=-5)))
    said = replace(SAID, time=later)
    assert matches(SearchFilter(since=NOON.replace(hour=17), until=NOON.replace(hour=17)), said)
    assert not matches(SearchFilter(until=NOON), said)
    assert matches(SearchFilter(until=later), said)
    assert not matches(SearchFilter(since=NOON.replace(hour=17, microsecond=1)), said)


def test_what_is_left_out_and_what_has_no_session_does_not_match() -> None:
    assert not matches(SearchFilter(left_out=frozenset({"c/m"})), SAID)
    assert matches(SearchFilter(left_out=frozenset({"c/o"})), SAID)
    assert not matches(SearchFilter(sessions=frozenset({"c"})), replace(SAID, session=None))


def deep(levels: int) -> Any:
    return {} if levels == 1 else {"a": deep(levels - 1)}


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ({"role": "robot"}, ValueError, "role must be one of user, assistant, system, tool"),
        ({"role": 7}, ValueError, "role must be one of"),
        ({"name": 7}, TypeError, "name must be text, not int"),
        ({"name": " "}, ValueError, "name must be one line"),
        ({"name": "x" * 256}, ValueError, "name must not be longer than 255"),
        ({"tags": "work"}, TypeError, "tags must be a list of texts, not str"),
        ({"metadata": ["a"]}, TypeError, "metadata must be an object, not list"),
        ({"metadata": {1: 2}}, TypeError, "keys in metadata must be strings, not int"),
        ({"metadata": {"a": float("nan")}}, ValueError, "numbers in metadata must be finite"),
        ({"metadata": {"a": "x" * 1_000_000}}, ValueError, f"metadata must be at most {MOST_BYTES:,} bytes"),
        ({"metadata": deep(100)}, ValueError, "metadata must not be nested deeper than 5 levels"),
        ({"content_type": "song"}, ValueError, "content_type must be one of"),
        ({"session_id": ""}, ValueError, "session_id must not be empty"),
        ({"since": "soon"}, ValueError, "since must be a time"),
        ({"since": "2025", "until": "2024"}, ValueError, "since must not be later than until"),
    ],
)
def test_filters_that_are_none_are_refused(given: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=f"^{told}"):
        read_filters(**given)


def test_no_filters_are_no_conditions() -> None:
    assert read_filters() == read_filters(tags=[], metadata={}) == RequestedFilters()
    assert not read_filters().has_labels
    assert not read_filters().has_speaker


@pytest.mark.parametrize("given", [0, 0.0, 0.25, 1, 1.0])
def test_a_score_from_0_to_1_is_a_cut(given: float) -> None:
    assert check_chance("min_score", given) == given


def test_no_cut_is_a_cut_at_0() -> None:
    assert check_chance("min_score", None) == 0.0


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (-0.1, ValueError, "min_score must be from 0 to 1, and it is -0.1"),
        (1.01, ValueError, "min_score must be from 0 to 1, and it is 1.01"),
        (float("nan"), ValueError, "min_score must be from 0 to 1, and it is nan"),
        (float("inf"), ValueError, "min_score must be from 0 to 1, and it is inf"),
        (True, TypeError, "min_score must be a number, not bool"),
        ("0.5", TypeError, "min_score must be a number, not str"),
    ],
)
def test_another_cut_is_refused(given: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=f"^{told}"):
        check_chance("min_score", given)
