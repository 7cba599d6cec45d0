"""Responses of a model are parsed leniently in form, never in content."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import UnusableAnswerError
from recollect.memory.entry import CONTENT_TYPES
from recollect.memory.extraction.fields import (
    LONGEST_TEXT,
    parse_confidence,
    parse_content_type,
    parse_date,
    parse_places,
    parse_score,
    parse_slot,
)
from recollect.memory.extraction.grounding import ground
from recollect.memory.extraction.json_text import find_json
from recollect.memory.extraction.responses import Choice, Draft, parse_mind, parse_modification, parse_update

from .kit import MOVED

thorough = settings(max_examples=200, deadline=None)

PARSERS: list[Callable[[str], Any]] = [parse_modification, parse_mind, parse_update]
TEA = Draft("profile", "The user likes tea.")
ELEMENT = '{"type": "profile", "text": "The user likes tea."}'
WHOLE = f'{{"summary": "Tea.", "candidates": [{ELEMENT}]}}'


# --- forms of a response ---


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"\ufeff  {WHOLE}\n",
        f"```json\n{WHOLE}\n```",
        f"```\n{WHOLE}```",
        f"Sure! Here is what I found [see below]:\n\n```JSON\n{WHOLE}\n```\nAnything else?",
        f"The answer (in {{braces}}) is {WHOLE}.",
        f"<think>Is it [tea?\n{{</think>\n{WHOLE}",
        json.dumps(WHOLE),
        WHOLE.replace("}]", "},]").replace("]}", "] , }"),
        f'{{"result": {WHOLE}}}',
        f'{{"response": {{"data": {WHOLE}}}}}',
        WHOLE.replace("candidates", "Entries"),
        WHOLE.replace('"text"', '"content"').replace('"type"', '"Content-Type"'),
        f'{{"summary": "Tea.", "candidates": {ELEMENT}}}',
        '{"summary": "Tea.", "candidates": ["The user likes tea."]}',
        '{"summary": "Tea.", "profile": ["The user likes tea."], "events": [], "mind": []}',
        '{"summary": "Tea.", "candidates": [{"text": "The user\nlikes tea.", "mood": {"a": [1]}}, 5, ""]}',
        f'{{"summary": "Tea.", "candidates": [{ELEMENT}, {ELEMENT}]}}',
    ],
)
def test_an_answer_is_read_in_many_forms(text: str) -> None:
    notes = parse_modification(text)
    assert (notes.text, notes.drafts) == ("Tea.", (TEA,))


@pytest.mark.parametrize(
    "text",
    [
        ELEMENT,
        f"[{ELEMENT}]",
        '["The user likes tea."]',
        f"Only this one: {ELEMENT}",
        '```json\n["The user likes tea."]\n```',
        '{"text": "The user likes tea."}',
    ],
)
def test_the_list_may_come_without_its_object(text: str) -> None:
    assert parse_modification(text).drafts == (TEA,)


def test_one_object_on_each_line_is_a_list() -> None:
    lines = "\n".join(json.dumps({"text": f"The user has {count} cats."}) for count in (1, 2, 3))
    assert [draft.text[13] for draft in parse_modification(lines).drafts] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "text", ["[]", '{"candidates": []}', "Nothing new: []", '{"profile": [], "event": []}']
)
def test_an_empty_list_is_an_answer(text: str) -> None:
    assert parse_modification(text).drafts == ()


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_an_answer_that_ends_early_is_never_read(cut: int) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_modification(WHOLE[:cut])
    with pytest.raises(UnusableAnswerError):
        parse_modification(f"Here you are:\n```json\n{WHOLE[:cut]}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"candidates": [{"text": "a b"}}, {"text": "c d"}]}', "broken"),
        ('{"text": "a "quoted" b"}\n{"text": "c d"}', "broken"),
        ('{"candidates": [{"text": "a b"}, {"text": "c d}]}', "middle"),
        ("<think>what was it", "thoughts"),
        ('I looked at ["m1", "m2"] and found nothing.', "form"),
        ('{"candidates": null}', "form"),
        ('{"candidates": [{"type": "profile"}]}', "can be parsed"),
    ],
)
def test_a_part_of_an_answer_is_no_answer(text: str, reason: str) -> None:
    with pytest.raises(UnusableAnswerError, match=reason):
        parse_modification(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 900_000,
        '["' + '\\"' * 450_000,
        "{a}" * 300_000,
        "[]" * 450_000,
        "``` " * 200_000,
        "<think>" * 140_000,
    ],
    ids=["brackets", "quotes", "braces", "lists", "fences", "thoughts"],
)
def test_a_long_and_hostile_answer_is_refused_before_anybody_loses_patience(text: str) -> None:
    """Parsing in quadratic time would exceed the timeout of the tests."""
    with pytest.raises(UnusableAnswerError):
        parse_modification(text)


def test_an_error_says_nothing_of_what_was_said() -> None:
    with pytest.raises(UnusableAnswerError) as caught:
        parse_modification("The user's password is swordfish. {")
    assert "swordfish" not in str(caught.value)


# --- fields ---


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0.25, 0.25),
        (1, 1.0),
        (80, 0.8),
        ("80%", 0.8),
        ("80 %", 0.8),
        ("８０％", 0.8),
        ("0.8", 0.8),
        ("High", 0.9),
        ("低", 0.3),
        (-1, 0.0),
        (1.2, 1.0),
        (1e300, 1.0),
        (10**400, 0.7),
        ("nan", 0.7),
        (float("inf"), 0.7),
        (True, 0.7),
        (None, 0.7),
        ("rather", 0.7),
        ([1], 0.7),
    ],
)
def test_a_confidence_is_between_0_and_1(given: object, expected: float) -> None:
    assert parse_confidence(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [(0.8, 0.8), (1, 1.0), ("0.5", 0.5), (80, None), (-0.1, None), ("high", None), (None, None)],
)
def test_a_score_is_as_the_model_gave_it_or_none(given: object, expected: float | None) -> None:
    assert parse_score(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *[(name, name) for name in CONTENT_TYPES],
        ("PROFILE", "profile"),
        (" Events ", "event"),
        ("档案", "profile"),
        ("事件", "event"),
        ("心理", "mind"),
        ("mind_content", "mind"),
        ("weather", None),
        (5, None),
    ],
)
def test_a_type_is_known_by_many_names(given: object, expected: str | None) -> None:
    assert parse_content_type(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2024-05-07", "2024-05-07"),
        (" 2024-05 ", "2024-05"),
        (2024, "2024"),
        ("2024-05-07T10:00:00Z", "2024-05-07"),
        ("2024-02-30", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (20.24, None),
        (True, None),
        (["2024"], None),
    ],
)
def test_a_date_is_one_of_the_calendar_or_none(given: object, expected: str | None) -> None:
    assert parse_date(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Home", "home"),
        ("relationship status", "relationship_status"),
        ("none", None),
        ("x" * 41, None),
        (5, None),
    ],
)
def test_a_slot_is_a_word(given: object, expected: str | None) -> None:
    assert parse_slot(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["m1", "m3"], (0, 2)),
        ("m2", (1,)),
        ("m1, m2 and 3", (0, 1, 2)),
        (2, (1,)),
        (["M1", "[m2]", "message 4"], (0, 1, 3)),
        (["m1", "m1"], (0,)),
        (["e1", "c2", "m0", 0, -1, None, True, 1.5, {"id": "m1"}, ["m1"]], ()),
        ("123e4567-e89b-12d3-a456-426614174000", ()),
        (None, ()),
    ],
)
def test_short_numbers_stand_for_places(given: object, expected: tuple[int, ...]) -> None:
    assert parse_places(given, "m") == expected


def draft_of(**fields: object) -> Draft:
    (draft,) = parse_modification(json.dumps({"candidates": [{"text": "A text.", **fields}]})).drafts
    return draft


def test_missing_fields_have_sensible_values() -> None:
    assert draft_of() == Draft("profile", "A text.", (), 0.7, None, None, None)
    assert draft_of(happened_on="2024").content_type == "event", "what has a date has happened"
    assert draft_of(type="unheard of").content_type == "profile"


def test_an_event_is_dated_by_when_it_happened() -> None:
    assert draft_of(type="event", happened_on="2024-05", valid_from="2023").valid_from == "2024-05"
    assert draft_of(type="event", happened_on="soon", valid_from="2023").valid_from == "2023"
    assert draft_of(type="event", slot="home").slot is None, "many events can hold at a time"


@pytest.mark.parametrize(
    ("start", "end", "kept"),
    [("2024-05", "2023", None), ("2024-05", "2024", "2024"), ("2024", "2025-01", "2025-01")],
)
def test_nothing_ends_before_it_starts(start: str, end: str, kept: str | None) -> None:
    draft = draft_of(type="profile", valid_from=start, valid_to=end)
    assert (draft.valid_from, draft.valid_to) == (start, kept)


def test_texts_are_bounded_and_can_be_stored() -> None:
    assert draft_of(text=" a\n\x00b\ud83d \u2028 c ").text == "a b\ufffd c"
    assert len(draft_of(text="word " * 10_000).text) <= LONGEST_TEXT


def test_insights_alone_are_an_entry() -> None:
    notes = parse_mind('{"insights": "The user is calm.", "confidence_score": "0.5"}')
    assert (notes.text, notes.score) == ("The user is calm.", 0.5)
    assert notes.drafts == (Draft("mind", "The user is calm."),)
    assert parse_mind('{"insights": ["Calm.", "Happy."]}').text == "Calm.\nHappy."
    assert parse_mind('{"insights": ""}').drafts == ()


def test_whatever_the_mind_stage_gives_is_of_that_type() -> None:
    (draft,) = parse_mind('{"insights": "", "entries": [{"type": "profile", "text": "Calm."}]}').drafts
    assert draft.content_type == "mind"


@pytest.mark.parametrize(
    "text",
    [
        '{"decisions": [{"candidate": "c2", "action": "supersede", "targets": ["e1", "e3"]}]}',
        '[{"candidate": 2, "action": "Replace", "target": "e1, e3"}]',
        '{"candidate": "2", "action": "更新", "targets": [1, "3"]}',
        '{"c2": {"action": "update", "targets": ["e1", "e3"]}}',
    ],
)
def test_decisions_are_read_in_many_forms(text: str) -> None:
    assert parse_update(text) == (Choice(1, "supersede", (0, 2)),)


def test_the_first_decision_on_a_candidate_counts() -> None:
    text = '{"c1": "add", "c2": "none"}'
    assert parse_update(text) == (Choice(0, "add"), Choice(1, "none"))
    twice = '[{"candidate": "c1", "action": "add"}, {"candidate": "c1", "action": "none"}]'
    assert parse_update(twice) == (Choice(0, "add"),)


@pytest.mark.parametrize(
    "text", ['{"decisions": [{"candidate": "c1", "action": "forget"}]}', '{"decisions": "add"}', '["add"]']
)
def test_decisions_that_cannot_be_read_are_no_answer(text: str) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_update(text)


# --- any text ---

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["m1", "c1", "e1", "add", "80%", "2024-05-07", "The user has a cat named Pixel."]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=5)
            | st.sampled_from(
                [
                    "candidates",
                    "entries",
                    "decisions",
                    "insights",
                    "text",
                    "type",
                    "evidence",
                    "candidate",
                    "action",
                    "targets",
                    "confidence",
                    "happened_on",
                    "slot",
                    "profile",
                    "mind",
                    "summary",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
PROSE = st.text(st.sampled_from('ab"\\{}[]:,` \n<think>/')) | st.text()


@pytest.mark.parametrize("parse", PARSERS)
@thorough
@given(before=PROSE, value=JSON, after=PROSE, cut=st.integers(0, 200) | st.none())
def test_whatever_is_said_is_a_value_or_one_error(
    parse: Callable[[str], Any], before: str, value: Any, after: str, cut: int | None
) -> None:
    for text in (json.dumps(value)[:cut], before + json.dumps(value)[:cut] + after, before):
        try:
            read = parse(text)
        except UnusableAnswerError:
            continue
        if parse is parse_update:
            assert all(choice.action in ("add", "supersede", "none") for choice in read)
            continue
        for candidate in ground(read.drafts, MOVED).candidates:
            assert 0 <= candidate.confidence <= 1
            assert 0 < len(candidate.text) <= LONGEST_TEXT
            assert candidate.content_type in CONTENT_TYPES
            assert candidate.evidence[0] in ("id-2", "id-4")
            assert 1 <= len(candidate.evidence) <= 3
            candidate.text.encode()


@thorough
@given(JSON, st.sampled_from(["{}", "Here: {}", "```json\n{}\n```", "{} That is all."]))
def test_json_is_found_as_it_was_written(value: Any, around: str) -> None:
    if isinstance(value, dict | list):
        text = around.replace("{}", json.dumps(value, indent=1), 1)
        assert repr(find_json(text).values) == repr([value])
