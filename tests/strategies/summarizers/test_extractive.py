"""The summarizer without a model: the best facts within the limit, deterministically."""

import asyncio
import json
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import SummaryFailedError
from recollect.items import Item, estimate_text_tokens
from recollect.strategies.summarizers import ExtractiveSummarizer, Summary
from recollect.testing.contract import ODD_ITEMS, in_event_loop

from .kit import asked, thorough

TALK: list[Item] = [
    {"role": "system", "content": "You are a travel agent. Never reveal 42."},
    {"role": "user", "content": "Hi! My name is Ada and I live in Berlin."},
    {"role": "assistant", "content": "Hello! How can I help you today?"},
    {"role": "user", "content": "Book a flight to Rome on 3 May, for 240 euros at most. Thanks!"},
    {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "Secret thoughts of 1999."}],
    },
    {"type": "function_call", "call_id": "c", "name": "book_flight", "arguments": '{"to": "Rome"}'},
    {"type": "function_call_output", "call_id": "c", "output": "LH123 is booked for 199 EUR."},
    {"role": "assistant", "content": "Sure. Done."},
]
CHINESE: list[Item] = [
    {"role": "user", "content": "你好！我叫小明，住在上海。"},
    {"role": "assistant", "content": "好的。"},
    {"role": "user", "content": "我的预算是三千元，五月三日出发。谢谢！"},
]


def summarize(items: list[Item], previous: str | None = None, max_tokens: int = 300) -> str:
    summary = asyncio.run(ExtractiveSummarizer()(asked(items, previous, max_tokens)))
    assert summary == Summary(summary.text, "extractive", None)
    assert estimate_text_tokens(summary.text) <= max_tokens
    return summary.text


def test_facts_of_the_user_and_results_of_tools_come_first() -> None:
    assert summarize(TALK, max_tokens=48) == (
        "- User: My name is Ada and I live in Berlin.\n"
        "- User: Book a flight to Rome on 3 May, for 240 euros at most.\n"
        '- Tool book_flight: {"to": "Rome"} → LH123 is booked for 199 EUR.'
    )


def test_instructions_and_thoughts_are_no_part_of_it() -> None:
    everything = summarize(TALK, max_tokens=10_000)
    assert "Never reveal" not in everything
    assert "Secret thoughts" not in everything
    assert "How can I help you today?" in everything, "with room enough all the rest is there"


def test_chinese_is_told_apart_sentence_by_sentence() -> None:
    assert summarize(CHINESE) == ("- User: 我叫小明，住在上海。\n- User: 我的预算是三千元，五月三日出发。")


def test_a_tool_that_has_not_answered_and_an_output_without_its_call_are_told() -> None:
    items: list[Item] = [
        {"type": "function_call", "call_id": "a", "name": "pay", "arguments": '{"amount": 5}'},
        {"type": "function_call_output", "call_id": "b", "output": "the orphan says hello"},
        {"type": "web_search_call", "id": "ws", "action": {"type": "search"}},
    ]
    assert summarize(items) == (
        '- Tool pay: {"amount": 5} → no output yet\n'
        "- Tool function: the orphan says hello\n"
        "- Tool web_search: done"
    )


def test_images_are_named() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    file = {"type": "input_file", "filename": "plan.pdf", "file_data": "AAAA"}
    assert (
        summarize([{"role": "user", "content": [picture, file]}])
        == "- User: [image]\n- User: [file plan.pdf]"
    )


def test_a_summary_is_extended_by_ranking_again_and_does_not_grow() -> None:
    previous = summarize(TALK, max_tokens=60)
    later: list[Item] = [
        {"role": "user", "content": "I moved to Hamburg on 1 June 2025, because of my new job at Airbus."},
        {"role": "assistant", "content": "Ok."},
    ]
    extended = summarize(later, previous, max_tokens=60)
    assert "Hamburg" in extended
    assert "Berlin" in extended
    roomy = summarize(later, previous, max_tokens=200)
    assert set(roomy.splitlines()) > set(previous.splitlines()), "with room enough nothing of it is lost"
    assert roomy.splitlines()[-1] == (
        "- User: I moved to Hamburg on 1 June 2025, because of my new job at Airbus."
    )


def test_hundreds_of_extensions_stay_within_the_limit_and_keep_what_matters() -> None:
    summary = summarize(
        [{"role": "user", "content": "My name is Ada Lovelace and I am allergic to peanuts."}]
    )
    chooser = random.Random(7)
    filler = ["ok", "sure", "that is nice", "tell me more about it", "I see what you mean", "and then what"]
    for _ in range(200):
        said: list[Item] = [
            {"role": role, "content": f"{chooser.choice(filler)}."} for role in ("user", "assistant")
        ]
        summary = summarize(said, summary, max_tokens=60)
    assert "allergic to peanuts" in summary


def test_extending_with_nothing_new_changes_nothing() -> None:
    once = summarize(TALK, max_tokens=100)
    assert summarize([], once, max_tokens=100) == once
    assert summarize(TALK, once, max_tokens=1000).count("My name is Ada") == 1


def test_a_summary_of_another_hand_is_taken_by_its_sentences() -> None:
    prose = "Ada lives in Berlin and flies to Rome on 3 May. She said hello. The budget is 240 euros."
    extended = summarize([{"role": "user", "content": "I need a hotel too."}], prose, max_tokens=30)
    assert "Ada lives in Berlin and flies to Rome on 3 May." in extended
    assert "She said hello" not in extended


def test_with_no_room_for_a_line_the_most_telling_one_is_cut() -> None:
    assert summarize([TALK[1], TALK[3]], max_tokens=9) == "- User: Book a flight to Rome on…"


@pytest.mark.parametrize("separator", ["\r", "\u2028", "\x0b", "\t\t", "\x85"])
def test_a_fact_is_one_line_whatever_separates_its_words(separator: str) -> None:
    once = summarize([{"role": "user", "content": f"I live{separator}in Berlin."}])
    assert once == "- User: I live in Berlin."
    assert summarize([], once) == once


def test_what_is_said_again_is_told_once() -> None:
    items: list[Item] = [{"role": "user", "content": "I live in Berlin."} for _ in range(50)]
    assert summarize(items) == "- User: I live in Berlin."


@pytest.mark.parametrize("said", ["Hi!", "Thank you very much.", "ok", "好的。", "谢谢！", "You're welcome!"])
def test_courtesies_are_left_out_unless_there_is_nothing_else(said: str) -> None:
    courtesy: Item = {"role": "user", "content": said}
    assert summarize([courtesy, {"role": "user", "content": "I like tea."}]) == "- User: I like tea."
    assert summarize([courtesy]) == f"- User: {said}"


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize(
    "items", [TALK, CHINESE, [{"role": "user", "content": "x" * 5000}]], ids=["en", "zh", "x"]
)
def test_a_limit_that_leaves_no_room_for_a_line_is_kept(items: list[Item], limit: int) -> None:
    assert summarize(items, max_tokens=limit)


@pytest.mark.parametrize(
    "items", [[], [{}], [{"role": "user", "content": ""}], [{"role": "system", "content": "rules"}]], ids=str
)
@in_event_loop
async def test_no_words_are_an_error(items: list[Item]) -> None:
    for previous in (None, "", "  \n"):
        with pytest.raises(SummaryFailedError, match="no text"):
            await ExtractiveSummarizer()(asked(items, previous))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(["type", "role", "content", "name", "arguments", "output", "call_id", "summary"])
TYPES = st.sampled_from(
    ["message", "function_call", "function_call_output", "reasoning", "user", "assistant"]
)
ANY_ITEM = st.dictionaries(FIELDS, VALUES | TYPES, max_size=6)


@thorough
@given(st.lists(ANY_ITEM, max_size=6), st.none() | st.text(max_size=200), st.integers(1, 100))
def test_any_items_give_a_summary_within_the_limit_or_a_clear_error(
    items: list[Item], previous: str | None, limit: int
) -> None:
    try:
        summary = summarize(items, previous, limit)
    except SummaryFailedError:
        return
    assert summary.strip()
    summary.encode()


def test_odd_items_are_summarized() -> None:
    assert "plain" in summarize(ODD_ITEMS)


def test_the_same_is_said_of_the_same_in_every_process() -> None:
    """Sets have a different order in another process."""
    script = (
        "import asyncio, sys, json\n"
        "from recollect.strategies.summarizers import ExtractiveSummarizer, SummaryRequest\n"
        "items = json.loads(sys.argv[1])\n"
        "print(asyncio.run(ExtractiveSummarizer()(SummaryRequest(items, None, 40, 's'))).text)"
    )

    def made(seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script, json.dumps(TALK * 3 + CHINESE)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"},
        ).stdout

    assert made("1") == made("2") == made("3")


@in_event_loop
async def test_the_event_loop_is_not_held_up() -> None:
    long: list[Item] = [
        {"role": "user", "content": f"Fact {n} of {n * 7} is about word{n % 97} and word{n % 89}."}
        for n in range(3000)
    ]
    making = asyncio.create_task(ExtractiveSummarizer()(asked(long)))
    ticks = 0
    while not making.done():
        await asyncio.sleep(0)
        ticks += 1
    assert ticks > 2, "the loop went round while the summary was made"
    assert (await making).text
