"""Consolidation: a model proposes changes to a memory, and pure functions decide."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.database.entries import Changes
from recollect.memory.entry import ContentType, Entry
from recollect.memory.facts.changes import ends
from recollect.memory.pipeline.consolidation import consolidate
from recollect.memory.pipeline.stages import Candidate, Decision

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PARIS = "The user lives in Paris"
LISBON = "The user lives in Lisbon"
CAT = "The user has a cat named Pixel"


def known(content_id: str, text: str, content_type: ContentType = "profile") -> Entry:
    return Entry(content_id, "memory", content_type, text, NOW)


def candidate(text: str, *evidence: str, content_type: ContentType = "profile", **more: Any) -> Candidate:
    return Candidate(content_type, text, evidence or ("m1",), **more)


def settled(candidates: list[Candidate], decisions: list[Decision], entries: list[Entry]) -> Changes:
    return consolidate("c", candidates, decisions, entries)


def added(changes: Changes) -> list[tuple[str, tuple[str, ...]]]:
    return [(entry.text, entry.supersedes) for entry in changes.added]


def test_nothing_to_say_changes_nothing() -> None:
    assert not settled([], [], [known("a", PARIS)])


def test_a_candidate_that_no_decision_names_is_added_with_all_that_it_brings() -> None:
    said = candidate(CAT, "m2", "m1", confidence=0.7, valid_from="2024", slot="pet", data={"name": "Pixel"})
    (entry,) = settled([said], [], [known("a", PARIS)]).added
    assert (entry.content_type, entry.text, entry.confidence, entry.valid_from) == (
        "profile",
        CAT,
        0.7,
        "2024",
    )
    assert (entry.slot, entry.data, entry.supersedes) == ("pet", {"name": "Pixel"}, ())
    assert entry.evidence == (("c", "m2"), ("c", "m1"))


def test_a_candidate_takes_the_place_of_what_it_was_shown() -> None:
    changes = settled([candidate(LISBON)], [Decision(0, "supersede", ("a",))], [known("a", PARIS)])
    assert added(changes) == [(LISBON, ("a",))]


def test_targets_that_were_not_shown_are_ignored() -> None:
    changes = settled([candidate(LISBON)], [Decision(0, "supersede", ("a", "x"))], [known("a", PARIS)])
    assert added(changes) == [(LISBON, ("a",))]
    assert added(settled([candidate(LISBON)], [Decision(0, "supersede", ("x",))], [])) == [(LISBON, ())]


def test_an_entry_of_another_kind_keeps_its_place() -> None:
    decisions = [Decision(0, "supersede", ("a",))]
    assert added(settled([candidate(LISBON)], decisions, [known("a", CAT, "mind")])) == [(LISBON, ())]


def test_a_change_ends_an_entry_of_another_kind_whatever_was_decided() -> None:
    for decided in ([], [Decision(0, "add")], [Decision(0, "supersede", ("a",))]):
        assert added(settled([candidate(LISBON)], decided, [known("a", PARIS, "mind")])) == [(LISBON, ("a",))]


def test_an_entry_is_superseded_once() -> None:
    decisions = [Decision(0, "supersede", ("a",)), Decision(1, "supersede", ("a",))]
    changes = settled([candidate(LISBON), candidate(CAT)], decisions, [known("a", PARIS)])
    assert added(changes) == [(LISBON, ("a",)), (CAT, ())]


def test_what_is_known_already_gets_support() -> None:
    changes = settled([candidate(PARIS, "m4")], [], [known("a", PARIS)])
    assert not changes.added
    (support,) = changes.supported
    assert (support.content_id, support.wording, support.evidence) == ("a", PARIS, (("c", "m4"),))


def test_what_is_known_already_gets_support_whatever_was_decided() -> None:
    for decision in (Decision(0, "add"), Decision(0, "supersede", ("a",)), Decision(0, "none", ("b",))):
        changes = settled([candidate(PARIS)], [decision], [known("a", PARIS), known("b", CAT)])
        assert [support.content_id for support in changes.supported] == ["a"]
        assert not changes.added


def test_the_same_words_of_another_kind_are_another_entry() -> None:
    assert added(settled([candidate(PARIS)], [], [known("a", PARIS, "mind")])) == [(PARIS, ())]


def test_what_was_decided_to_be_known_gets_support() -> None:
    changes = settled([candidate("Home is Paris", "m3")], [Decision(0, "none", ("a",))], [known("a", PARIS)])
    assert [(support.content_id, support.evidence) for support in changes.supported] == [
        ("a", (("c", "m3"),))
    ]
    assert not changes.added


def test_what_was_decided_to_be_worth_nothing_is_left_out() -> None:
    assert not settled([candidate("Hm")], [Decision(0, "none")], [known("a", PARIS)])


def test_decisions_about_nothing_are_ignored() -> None:
    assert added(settled([candidate(CAT)], [Decision(7, "none"), Decision(-1, "none")], [])) == [(CAT, ())]


def test_the_same_twice_is_one_entry_with_the_evidence_of_both() -> None:
    (entry,) = settled([candidate(CAT, "m1"), candidate(CAT, "m2", "m1")], [], []).added
    assert entry.evidence == (("c", "m1"), ("c", "m2"))


def test_an_entry_cites_at_most_three_messages() -> None:
    (entry,) = settled([candidate(CAT, "m1", "m2"), candidate(CAT, "m3", "m4")], [], []).added
    assert entry.evidence == (("c", "m1"), ("c", "m2"), ("c", "m3"))
    (alone,) = settled([candidate(CAT, "m1", "m2", "m3", "m4")], [], []).added
    assert len(alone.evidence) == 3


def test_the_second_of_two_that_say_the_same_supersedes_too() -> None:
    decisions = [Decision(0, "add"), Decision(1, "supersede", ("a",))]
    changes = settled([candidate(LISBON, "m1"), candidate(LISBON, "m2")], decisions, [known("a", PARIS)])
    assert added(changes) == [(LISBON, ("a",))]


TEXTS = [PARIS, LISBON, CAT, "The user plays chess", "The user does not play chess", "用户住在北京"]
TYPES: list[ContentType] = ["profile", "event", "mind"]
IDS = [f"e{n}" for n in range(6)]
entries = st.lists(
    st.builds(known, st.sampled_from(IDS), st.sampled_from(TEXTS), st.sampled_from(TYPES)),
    max_size=6,
    unique_by=lambda entry: entry.content_id,
)
candidates = st.lists(
    st.builds(
        Candidate,
        st.sampled_from(TYPES),
        st.sampled_from(TEXTS),
        st.lists(st.sampled_from(["m1", "m2", "m3", "m4", "m5"]), max_size=5).map(tuple),
    ),
    max_size=5,
)
decisions = st.lists(
    st.builds(
        Decision,
        st.integers(-1, 6),
        st.sampled_from(["add", "supersede", "none"]),
        st.lists(st.sampled_from([*IDS, "unknown"]), max_size=4).map(tuple),
    ),
    max_size=6,
)


@given(candidates, decisions, entries)
def test_whatever_a_model_decides_nothing_goes_unless_something_takes_its_place(
    said: list[Candidate], decided: list[Decision], held: list[Entry]
) -> None:
    changes = consolidate("c", said, decided, held)
    targets = [target for entry in changes.added for target in entry.supersedes]
    targets += [target for target, _ in changes.superseded]
    assert len(targets) == len(set(targets)), "each goes once"
    by_id = {entry.content_id: entry for entry in held}
    asked_for = {(d.candidate, target) for d in decided if d.action == "supersede" for target in d.targets}
    for entry in changes.added:
        for target in entry.supersedes:
            is_asked_for = any(
                (place, target) in asked_for for place, each in enumerate(said) if each.text == entry.text
            )
            is_asked_for = is_asked_for and by_id[target].content_type == entry.content_type
            assert is_asked_for or ends(entry.text, by_id[target].text)
    for target, by in changes.superseded:
        assert target != by
        is_asked_for = by_id[target].content_type == by_id[by].content_type
        is_asked_for = is_asked_for and target in {each for _, each in asked_for}
        assert is_asked_for or any(ends(each.text, by_id[target].text) for each in said)
    assert {support.content_id for support in changes.supported} <= by_id.keys()
    assert all(len(each.evidence) <= 3 for each in (*changes.added, *changes.supported))


@given(candidates, entries)
def test_nothing_that_no_decision_drops_is_lost(said: list[Candidate], held: list[Entry]) -> None:
    changes = consolidate("c", said, [], held)
    told = {(entry.content_type, entry.text) for entry in (*held, *changes.added)}
    assert {(each.content_type, each.text) for each in said} <= told
