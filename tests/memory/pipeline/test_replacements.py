"""An extractor may name the entries that a candidate replaces; only those about the same are superseded."""

import pytest

from recollect.memory.entry import Entry
from recollect.memory.pipeline.replacements import apply_replacements, by_relevance, can_replace
from recollect.memory.pipeline.stages import Candidate, Decision
from recollect.memory.times import now


def entry(content_id: str, text: str, slot: str | None = None) -> Entry:
    return Entry(content_id, "memory", "profile", text, now(), slot=slot)


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("The user lives in Porto.", "The user lives in Lisbon.", True),
        ("The user lives in Porto.", "The user works as a nurse.", False),
        ("The user lives in Porto.", "The user has a cat.", False),
        ("The user wants long answers.", "The user wants short answers.", True),
        ("The user has a cat named Pixel.", "The user has a cat.", True),
        ("The user is allergic to milk.", "The user is allergic to peanuts.", False),
        ("The user is no longer allergic to peanuts.", "The user is allergic to peanuts.", True),
        ("The user likes tea.", "用户住在上海。", False),
    ],
)
def test_only_what_is_about_the_same_is_replaced(text: str, known: str, expected: bool) -> None:
    assert can_replace(text, known) is expected


def test_a_named_entry_is_superseded_and_so_are_those_that_the_rules_found() -> None:
    known = [
        entry("a", "The user lives in Lisbon."),
        entry("b", "The user lives in Faro."),
        entry("c", "Tea."),
    ]
    porto = Candidate("profile", "The user lives in Porto.", ("m",), replaces=("a", "c", "gone"))
    tea = Candidate("profile", "The user likes tea.", ("m",))
    rules = [Decision(0, "supersede", ("b",)), Decision(1, "none", ("c",))]
    assert apply_replacements([porto, tea], rules, known) == (
        Decision(0, "supersede", ("a", "b")),
        Decision(1, "none", ("c",)),
    )
    assert apply_replacements([tea], (), known) == ()


def test_entries_of_slots_come_first_and_then_those_that_share_most() -> None:
    known = [
        entry("dog", "The user has a dog."),
        entry("cat", "The user has a cat named Pixel."),
        entry("home", "The user lives in Lisbon.", "home"),
    ]
    ordered = by_relevance(known, ["My cat Pixel has met a dog."])
    assert [each.content_id for each in ordered] == ["home", "cat", "dog"]
