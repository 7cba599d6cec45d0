"""Merging entries: what is said twice becomes one, and what repeats becomes a habit; nothing is lost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory.database.entries import Changes
from recollect.memory.entry import ContentType, Entry, Evidence
from recollect.memory.pipeline.habits import undated, word_habit
from recollect.memory.pipeline.merging import merge_entries

START = datetime(2026, 10, 4, 9, tzinfo=UTC)  # a Sunday


def learned(text: str, number: int = 0, content_type: ContentType = "profile", **more: Any) -> Entry:
    """An entry that a run has learned."""
    cited = (Evidence("talk", f"message-{number}", f"run-{number}"),)
    said_at = START + timedelta(days=number)
    fields = {"evidence": cited, "said_at": said_at, **more}
    return Entry(f"id-{number}", "memory", content_type, text, said_at, **fields)


def event(text: str, number: int, day: str | None = None) -> Entry:
    """An event on one of the days after a Sunday."""
    date = day or (START + timedelta(days=number)).date().isoformat()
    return learned(text.format(date=date), number, "event", valid_from=date)


def apply(entries: list[Entry], changes: Changes) -> list[Entry]:
    """The entries after the changes, with their evidence."""
    by_id = {entry.content_id: entry for entry in entries}
    for new in changes.added:
        cited = tuple(Evidence(*each, "merging") for each in new.evidence)
        by_id[new.content_id] = Entry(
            new.content_id,
            "memory",
            new.content_type,
            new.text,
            START,
            new.confidence,
            new.said_at,
            new.valid_from,
            new.valid_to,
            evidence=cited,
            data=new.data,
            slot=new.slot,
        )
    for support in changes.supported:
        entry = by_id[support.content_id]
        more = tuple(Evidence(*each, support.learned_by) for each in support.evidence)
        by_id[entry.content_id] = _replace(entry, evidence=tuple(dict.fromkeys((*entry.evidence, *more))))
    for gone, by in changes.superseded:
        by_id[gone] = _replace(by_id[gone], retired_at=START, superseded_by=by)
    return list(by_id.values())


def _replace(entry: Entry, **fields: Any) -> Entry:
    from dataclasses import replace

    return replace(entry, **fields)


def current(entries: list[Entry]) -> list[str]:
    return sorted(entry.text for entry in entries if entry.retired_at is None)


def merged(*entries: Entry) -> list[str]:
    """The texts of the current entries after merging."""
    return current(apply(list(entries), merge_entries(entries)))


@pytest.mark.parametrize(
    ("one", "other", "stays"),
    [
        ("The user likes green tea.", "The user likes green tea.", "The user likes green tea."),
        ("The user has a dog.", "The user has a dog named Rex.", "The user has a dog named Rex."),
        (
            "The user works on boat engines.",
            "The user works on boat engines in Porto.",
            "The user works on boat engines in Porto.",
        ),
    ],
)
def test_what_another_entry_contains_goes_into_it(one: str, other: str, stays: str) -> None:
    for first, second in ((one, other), (other, one)):
        entries = [learned(first, 1), learned(second, 2)]
        changes = merge_entries(entries)
        assert current(apply(entries, changes)) == [stays]
        (support,) = changes.supported
        assert support.wording in (one, other)
        assert support.evidence == (("talk", f"message-{support.said_at.day - START.day}"),)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user has a dog.", "The user has a cat."),
        ("The user likes tea.", "The user does not like tea."),
        ("The user is allergic to nuts.", "The user is allergic to nuts and milk."),
        ("The user has two children.", "The user has three children."),
        ("The user's sister lives in Rome.", "The user lives in Rome."),
        ("The user likes tea.", "The user likes tea without milk."),
        ("The user used to live in Lisbon.", "The user lives in Lisbon."),
    ],
)
def test_what_says_something_else_stays(one: str, other: str) -> None:
    assert merged(learned(one, 1), learned(other, 2)) == sorted([one, other])


def test_the_same_as_profile_and_mind_is_one_profile_entry() -> None:
    entries = [learned("The user likes tea.", 1, "mind"), learned("The user likes tea.", 2)]
    changes = merge_entries(entries)
    assert changes.superseded == (("id-1", "id-2"),)


def test_events_of_different_days_are_different() -> None:
    one, other = "The user saw Bo on 4 October 2026.", "The user saw Bo on 5 October 2026."
    assert merged(event(one, 0), event(other, 1)) == [one, other]


def test_entries_with_other_dates_of_validity_stay() -> None:
    since = learned("The user plays the cello well.", 1, valid_from="2020")
    ended = learned("The user plays the cello well.", 2, valid_to="2019")
    assert len(merged(since, ended)) == 2


@pytest.mark.parametrize(
    "by_person",
    [
        {"evidence": ()},
        {"evidence": (Evidence("talk", "m", None),)},
        {"data": {"edited": True}},
    ],
)
def test_what_a_person_wrote_is_left_alone(by_person: dict[str, Any]) -> None:
    written = learned("The user has a dog.", 1, **by_person)
    assert not merge_entries([written, learned("The user has a dog named Rex.", 2)])
    assert not merge_entries([written, learned("The user has a dog.", 2)])


RAN = "The user went running on {date}."


def test_what_repeats_every_week_becomes_a_habit_with_all_evidence() -> None:
    events = [event(RAN, 7 * week) for week in range(4)]
    changes = merge_entries(events)
    (habit,) = changes.added
    assert (habit.content_type, habit.text) == ("profile", "The user goes running on Sundays.")
    assert (habit.valid_from, habit.data) == ("2026-10-04", {"habit": True, "times": 4})
    assert habit.evidence == tuple(("talk", f"message-{7 * week}") for week in range(4))
    assert changes.superseded == tuple((each.content_id, habit.content_id) for each in events)


def test_one_more_time_supports_the_habit() -> None:
    events = [event(RAN, 7 * week) for week in range(3)]
    after = apply(events, merge_entries(events))
    again = [*after, event(RAN, 28)]
    changes = merge_entries(again)
    assert changes.added == ()
    assert current(apply(again, changes)) == ["The user goes running on Sundays."]


def test_a_habit_that_a_person_wrote_is_enough() -> None:
    events = [event(RAN, 7 * week) for week in range(3)]
    written = Entry("p", "memory", "profile", "The user goes running on Sundays.", START)
    assert not merge_entries([*events, written])


@pytest.mark.parametrize(
    "days", [(0, 7), (0, 1, 2), (0, 7, 14, 1, 2), (0, 1, 8, 15, 3, 4), (0, 0, 0)], ids=str
)
def test_what_is_no_habit_stays_events(days: tuple[int, ...]) -> None:
    dates = [(START + timedelta(days=day)).date().isoformat() for day in days]
    events = [event(f"{RAN[:-1]} in park {n}.", n, date) for n, date in enumerate(dates)]
    assert merge_entries(events).added == ()
    same = [event(RAN, number, date) for number, date in enumerate(dates)]
    assert merge_entries(same).added == ()


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("The user went running today, 4 October 2026 (said on 4 October 2026).", "today", "goes running"),
        ("The user played tennis with Bo on 4 October 2026.", None, "plays tennis with Bo"),
        ("The user went running this morning, 4 October 2026.", "this morning", "goes running"),
        ("The user swam on Sunday, 2026-10-04.", None, "swims"),
    ],
)
def test_a_habit_is_worded_without_its_date(text: str, phrase: str | None, expected: str) -> None:
    data = {"phrase": phrase} if phrase else {}
    ran = learned(text, 0, "event", valid_from="2026-10-04", data=data)
    assert word_habit(ran) == f"The user {expected} on Sundays."


def test_a_habit_in_chinese() -> None:
    ran = learned(
        "今天（2026年10月4日）用户去跑步了。", 0, "event", valid_from="2026-10-04", data={"phrase": "今天"}
    )
    assert word_habit(ran) == "用户每周日去跑步。"


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("The user frobnicated on 4 October 2026.", "2026-10-04"),
        ("Ines visited the user on 4 October 2026.", "2026-10-04"),
        ("The user went running in October 2026.", "2026-10"),
        ("The user went running.", None),
    ],
)
def test_what_cannot_be_worded_is_no_habit(text: str, day: str | None) -> None:
    assert word_habit(learned(text, 0, "event", valid_from=day)) is None


def test_an_undated_text_reads_well() -> None:
    assert undated(event("The user went running on 4 October 2026.", 0)) == "The user went running."


TEXTS = st.sampled_from(
    [
        "The user likes green tea.",
        "The user likes green tea with Bo.",
        "The user really likes green tea.",
        "The user does not like green tea.",
        "The user has a dog.",
        "The user has a dog named Rex.",
        "The user has a dog named Rex, a poodle.",
        "The user lives in Lisbon.",
        "The user lives in Lisbon with Bo.",
        "用户喜欢喝茶。",
        "用户非常喜欢喝茶。",
    ]
)
EVENTS = st.sampled_from(
    ["The user went running on {date}.", "The user played chess on {date}.", "用户去跑步了。"]
)


@st.composite
def memories(draw: st.DrawFn) -> list[Entry]:
    """Entries as a memory has them, learned by runs and written by persons."""
    entries = []
    for number in range(draw(st.integers(0, 14))):
        if draw(st.booleans()):
            entries.append(event(draw(EVENTS), number, None))
            day = (START + timedelta(days=7 * number + draw(st.sampled_from([0, 0, 0, 1])))).date()
            entries[-1] = _replace(entries[-1], valid_from=day.isoformat())
        else:
            kind: ContentType = draw(st.sampled_from(["profile", "mind"]))
            entries.append(learned(draw(TEXTS), number, kind))
        if draw(st.integers(0, 5)) == 0:
            entries[-1] = _replace(entries[-1], evidence=())
    return entries


@settings(max_examples=300, deadline=None)
@given(memories(), st.randoms())
def test_merging_twice_changes_nothing_and_no_evidence_is_lost(entries: list[Entry], random: Any) -> None:
    after = apply(entries, merge_entries(entries))
    random.shuffle(after)
    assert not merge_entries(after)
    by_id = {entry.content_id: entry for entry in after}
    for entry in entries:
        stays = by_id[entry.content_id]
        assert stays.text == entry.text
        if not entry.evidence:
            assert stays == entry, "a person wrote it"
        while stays.superseded_by is not None:
            stays = by_id[stays.superseded_by]
            messages = {(each.conversation_id, each.message_id) for each in stays.evidence}
            assert {(each.conversation_id, each.message_id) for each in entry.evidence} <= messages
        assert stays.retired_at is None


@settings(max_examples=100, deadline=None)
@given(memories(), st.randoms())
def test_the_order_of_the_entries_decides_nothing(entries: list[Entry], random: Any) -> None:
    shuffled = list(entries)
    random.shuffle(shuffled)
    assert current(apply(entries, merge_entries(entries))) == current(
        apply(shuffled, merge_entries(shuffled))
    )
