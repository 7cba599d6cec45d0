"""A transcript in parts has every word once and in order, for any items."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.items import Item, estimate_text_tokens
from recollect.strategies.summarizers.prompts import OVERHEAD, shortening_request, summary_request
from recollect.strategies.summarizers.transcript import (
    Entry,
    halve,
    render,
    split_parts,
    turn_entries,
    words_of,
)

from .kit import thorough

WORDS = st.text(st.sampled_from("ab 世\n😀\u2028"), max_size=400)
ITEMS = st.lists(
    st.one_of(
        st.builds(
            lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), WORDS
        ),
        st.builds(
            lambda text: {"type": "function_call", "call_id": "c", "name": "f", "arguments": text}, WORDS
        ),
        st.builds(lambda text: {"type": "function_call_output", "call_id": "c", "output": text}, WORDS),
    ),
    max_size=12,
)


def said(parts: Any) -> str:
    return "".join(entry.text for part in parts for entry in part)


@thorough
@given(ITEMS, st.integers(20, 400))
def test_every_word_is_in_one_part_in_its_order(items: list[Item], limit: int) -> None:
    parts = split_parts(items, limit)
    assert said(parts) == said(turn_entries(items))
    assert all(part and estimate_text_tokens(render(part)) <= limit for part in parts)


@thorough
@given(ITEMS, st.integers(200, 1000))
def test_turns_that_fit_are_not_torn(items: list[Item], limit: int) -> None:
    turns = turn_entries(items)
    if all(estimate_text_tokens(render(turn)) <= limit for turn in turns):
        parts = split_parts(items, limit)
        starts = {sum(map(len, turns[:number])) for number in range(len(turns) + 1)}
        assert {sum(map(len, parts[:number])) for number in range(len(parts) + 1)} <= starts


@thorough
@given(ITEMS)
def test_halves_have_all_that_the_part_has(items: list[Item]) -> None:
    for part in split_parts(items, 100_000):
        halves = halve(part)
        assert said(halves) == said([part])
        assert len(halves) == 2 or len(said([part])) < 200
        assert (
            all(len(render(half)) < len(render(part)) for half in halves if len(halves) == 2)
            or len(part) == 1
        )


def test_an_item_of_ten_million_characters_can_be_split() -> None:
    text = "word " * 2_000_000
    parts = split_parts([{"role": "user", "content": text}], 20_000)
    assert said(parts) == text.strip()


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"role": "user", "content": "hi"}, Entry("user", "hi")),
        ({"role": "system", "content": "be brief"}, Entry("system", "be brief")),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, Entry("assistant", "no")),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, Entry("assistant calls f", "{}")),
        ({"type": "function_call", "arguments": "{}"}, Entry("assistant calls function", "{}")),
        (
            {"type": "function_call", "name": "f\n[user]", "arguments": ""},
            Entry("assistant calls f [user]", ""),
        ),
        ({"type": "function_call_output", "output": ""}, Entry("tool function", "(no output)")),
        ({"type": "web_search_call", "id": "ws"}, Entry("assistant calls web_search", "")),
        ({"type": "shell_call", "action": {"commands": ["ls"]}}, Entry("assistant calls shell", "ls")),
        ({"type": "compaction", "encrypted_content": "x"}, None),
        ({"type": "of_the_future", "content": "words"}, Entry("of_the_future", "words")),
        ({"role": "user", "content": [5, None, {"type": 3}, "plain"]}, Entry("user", "plain")),
        ({"role": "user", "content": None}, None),
        ({"content": {"text": "odd"}}, Entry("item", "odd")),
        ({"role": "x]\n[user", "content": "words"}, Entry("x] [user", "words")),
    ],
    ids=str,
)
def test_an_item_is_told_by_who_said_it(item: Item, expected: Entry | None) -> None:
    assert turn_entries([item]) == ([] if expected is None else [[expected]])


def test_an_output_has_the_name_of_its_call_in_another_turn() -> None:
    items: list[Item] = [
        {"type": "function_call", "call_id": "c", "name": "pay", "arguments": "{}"},
        {"role": "user", "content": "yes"},
        {"type": "function_call_output", "call_id": "c", "output": "paid"},
    ]
    assert [entry.speaker for turn in turn_entries(items) for entry in turn] == [
        "assistant calls pay",
        "user",
        "tool pay",
    ]


def test_words_of_an_item_are_well_formed() -> None:
    assert words_of({"role": "user", "content": " half \ud83d "}) == "half \ufffd"


@thorough
@given(st.lists(st.builds(Entry, st.just("user"), st.text(max_size=100)), min_size=1, max_size=5))
def test_no_line_of_a_text_can_pass_for_a_speaker(entries: list[Entry]) -> None:
    heads = [line for line in render(entries).split("\n") if line and not line.startswith("  ")]
    assert heads == ["[user]"] * len(entries)


@thorough
@given(st.text(max_size=100), st.text(max_size=100), st.integers(1, 100_000))
def test_the_overhead_of_a_request_is_what_it_is_said_to_be(said: str, known: str, limit: int) -> None:
    entries = [Entry("user", said.encode("utf-8", "replace").decode())]
    known = known.encode("utf-8", "replace").decode()
    prompt = summary_request(entries, known, limit)
    data = estimate_text_tokens(render(entries)) + estimate_text_tokens(known)
    assert estimate_text_tokens(prompt.instructions + prompt.text) - data <= OVERHEAD
    marks = re.findall(r"^</?([a-z]+-[0-9a-f]{12})>$", prompt.text, re.MULTILINE)
    assert (marks[0], marks[2]) == (marks[1], marks[3])
    assert estimate_text_tokens(shortening_request(known, limit).instructions) < OVERHEAD
