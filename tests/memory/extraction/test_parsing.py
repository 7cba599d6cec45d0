"""Responses of a model are parsed leniently in form, never in content."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import UnusableAnswerError
from recollect.memory.entry import CONTENT_TYPES
from recollect.memory.extraction.candidates import to_candidates
from recollect.memory.extraction.fields import (
    INSTRUCTION_TYPE,
    LONGEST_TEXT,
    parse_confidence,
    parse_content_type,
    parse_date,
    parse_places,
)
from recollect.memory.extraction.json_text import find_json
from recollect.memory.extraction.responses import Draft, parse_response
from recollect.memory.pipeline.grounding import ground

from .kit import MOVED

thorough = settings(max_examples=200, deadline=None)

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
    assert parse_response(text).drafts == (TEA,)


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
    assert parse_response(text).drafts == (TEA,)


def test_one_object_on_each_line_is_a_list() -> None:
    lines = "\n".join(json.dumps({"text": f"The user has {count} cats."}) for count in (1, 2, 3))
    assert [draft.text[13] for draft in parse_response(lines).drafts] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "text", ["[]", '{"candidates": []}', "Nothing new: []", '{"profile": [], "event": []}']
)
def test_an_empty_list_is_an_answer(text: str) -> None:
    assert parse_response(text).drafts == ()


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_an_answer_that_ends_early_is_never_read(cut: int) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_response(WHOLE[:cut])
    with pytest.raises(UnusableAnswerError):
        parse_response(f"Here you are:\n```json\n{WHOLE[:cut]}")


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
        parse_response(text)


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
        parse_response(text)


def test_an_error_says_nothing_of_what_was_said() -> None:
    with pytest.raises(UnusableAnswerError) as caught:
        parse_response("The user's password is swordfish. {")
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
    [
        *[(name, name) for name in CONTENT_TYPES],
        ("PROFILE", "profile"),
        (" Events ", "event"),
        ("档案", "profile"),
        ("事件", "event"),
        ("心理", "mind"),
        ("mind_content", "mind"),
        ("instructions", INSTRUCTION_TYPE),
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
    (draft,) = parse_response(json.dumps({"candidates": [{"text": "A text.", **fields}]})).drafts
    return draft


def test_missing_fields_have_sensible_values() -> None:
    assert draft_of() == Draft("profile", "A text.", (), "", 0.7, None, None, None, ())
    assert draft_of(date="2024").content_type == "event", "what has a date has happened"
    assert draft_of(kind="unheard of").content_type == "profile"


def test_every_field_of_the_schema_is_read() -> None:
    fields = {"from": "m2", "quote": " the\nwords ", "kind": "event", "date": "2024-05", "until": "2024-06"}
    draft = draft_of(**fields, replaces=["e1", "e3"], expires_at="2024-07-01")
    assert draft == Draft(
        "event", "A text.", (1,), "the words", 0.7, "2024-05", "2024-06", "2024-07-01", (0, 2)
    )
    assert draft.kind == "event"


@pytest.mark.parametrize(
    ("given", "read"), [("end", "end"), ("Confirm", "confirm"), ("add", "add"), (None, "add"), (3, "add")]
)
def test_an_operation_is_read(given: object, read: str) -> None:
    assert draft_of(op=given).operation == read


def test_several_quotes_are_read() -> None:
    draft = draft_of(quotes=["a b", "c d", 5, "e f", "g h"])
    assert (draft.quote, draft.quotes) == ("a b", ("c d", "e f"))


@pytest.mark.parametrize("name", ["date", "happened_on", "valid_from", "since"])
def test_a_date_is_read_under_many_names(name: str) -> None:
    assert draft_of(**{name: "2024-05"}).date == "2024-05"


@pytest.mark.parametrize("given", [5, None, [], {"words": "a b"}, [["a b"]]])
def test_a_quote_is_a_text_or_none(given: object) -> None:
    assert draft_of(quote=given).quote == ""
    assert draft_of(quote=["a b", "c d"]).quote == "a b"


@pytest.mark.parametrize(
    ("start", "end", "kept"),
    [("2024-05", "2023", None), ("2024-05", "2024", "2024"), ("2024", "2025-01", "2025-01")],
)
def test_nothing_ends_before_it_starts(start: str, end: str, kept: str | None) -> None:
    draft = draft_of(date=start, until=end)
    assert (draft.date, draft.until) == (start, kept)


def test_texts_are_bounded_and_can_be_stored() -> None:
    assert draft_of(text=" a\n\x00b\ud83d \u2028 c ").text == "a b\ufffd c"
    assert len(draft_of(text="word " * 10_000).text) <= LONGEST_TEXT
    assert len(draft_of(quote="word " * 10_000).quote) <= 300


def test_only_the_first_elements_of_a_list_without_end_are_read() -> None:
    texts = [f"The user has {number} cats." for number in range(10_000)]
    parsed = parse_response(json.dumps({"memories": texts}))
    assert [draft.text for draft in parsed.drafts] == texts[:200]
    assert parsed.too_many == 9_800


# --- any text ---

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["m1", "e1", "80%", "2024-05-07", "my cat Pixel", "The user has a cat named Pixel."]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=5)
            | st.sampled_from(
                [
                    "memories",
                    "candidates",
                    "text",
                    "kind",
                    "from",
                    "quote",
                    "confidence",
                    "date",
                    "until",
                    "replaces",
                    "profile",
                    "mind",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
PROSE = st.text(st.sampled_from('ab"\\{}[]:,` \n<think>/')) | st.text()


@thorough
@given(before=PROSE, value=JSON, after=PROSE, cut=st.integers(0, 200) | st.none())
def test_whatever_is_said_is_a_value_or_one_error(
    before: str, value: Any, after: str, cut: int | None
) -> None:
    for text in (json.dumps(value)[:cut], before + json.dumps(value)[:cut] + after, before):
        try:
            read = parse_response(text)
        except UnusableAnswerError:
            continue
        for candidate in ground(to_candidates(read.drafts, MOVED), MOVED).candidates:
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
