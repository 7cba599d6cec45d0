"""The ready-made input callbacks in real runs: the model sees the view, and the store does not.

The history has 15 items, and the three turns that follow add 4, 2 and 2. A view is given by the positions of
the items in it, of which the newest is the new input; what the callback changes is spelled out.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    SessionSettings,
    chain_callbacks,
    drop_sensitive,
    find_orphans,
    limit_history,
    mask_sensitive,
    summarize_head,
)
from recollect.testing.contract import message

from .scenarios import (
    RUNS,
    Item,
    Scenario,
    answer,
    approve,
    approve_elsewhere,
    both_sessions,
    call,
    in_short,
    late_answer,
    outage,
    play,
)


def said(text: str) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"id": f"old_{text}", "type": "message", "role": "assistant", "status": "completed"} | {
        "content": content
    }


def called(call_id: str, tool: str, **arguments: Any) -> Item:
    arguments_text = json.dumps(arguments)
    return {"type": "function_call", "id": f"old_{call_id}", "call_id": call_id, "name": tool} | {
        "arguments": arguments_text
    }


def returned(call_id: str, output: str) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def thought(number: int) -> Item:
    return {"type": "reasoning", "id": f"old_{number}", "summary": [], "encrypted_content": "gAAAAA"}


HISTORY: list[Item] = [
    {"role": "system", "content": "Be kind."},  # 0
    message("my password is swordfish"),
    said("noted"),
    message("1+2?"),  # 3
    thought(1),
    called("c1", "add", a=1, b=2),
    returned("c1", "3"),
    said("3"),
    message("weather? my card is 4711"),  # 8
    thought(2),
    called("c2", "weather", city="Paris", card="4711"),
    called("c3", "weather", city="Rome"),
    returned("c2", json.dumps({"sun": True, "password": "Swordfish"})),
    returned("c3", "sunny"),
    said("sunny"),  # 14
]
TURNS = Scenario(
    ["1+2?", "my password is swordfish", "my password is swordfish"],  # word for word as before
    lambda: [[call("add", "new", a=1, b=2)], answer("three"), answer("I know"), answer("I do know")],
    "",
)
STORED = [message(text) for text in TURNS.turns]


def redacted(item: Item) -> Item:
    """The item without its secrets, done in another way than the callback does it."""
    text = json.dumps(item, ensure_ascii=False)
    for secret in ("swordfish", "Swordfish", "4711"):
        text = text.replace(secret, "[redacted]")
    redacted_item: Item = json.loads(text)
    return redacted_item


def unchanged(item: Item) -> Item:
    return item


def summary(count: int) -> Item:
    return {"role": "system", "content": f"[Summary of the earlier conversation]\n{count} items"}


async def count_slowly(items: list[Item]) -> str:
    await asyncio.sleep(0)
    return f"{len(items)} items"


def count(items: list[Item]) -> str:
    return f"{len(items)} items"


@dataclass(frozen=True)
class Case:
    callback: Callable[[], Any]
    views: tuple[list[int | Item], list[int | Item], list[int | Item]]  # of the history, turn by turn
    shown_as: Callable[[Item], Item] = unchanged
    stored_as: Callable[[Item], Item] = unchanged  # only what is new


def all_but(size: int, *dropped: int) -> list[int | Item]:
    return [n for n in range(size) if n not in dropped]


CASES = {
    "limit to nothing": Case(lambda: limit_history(0), ([], [], [])),
    "limit": Case(
        lambda: limit_history(7),
        ([0, *range(9, 15)], [0, *range(14, 19)], [0, *range(15, 21)]),
    ),
    "limit that tears": Case(lambda: limit_history(4), ([0, 14], [0, 16, 17, 18], [0, 18, 19, 20])),
    "limit beyond": Case(lambda: limit_history(100), (all_but(15), all_but(19), all_but(21))),
    "drop words": Case(
        lambda: drop_sensitive(["SWORDFISH"]),
        # One of two calls under one thought returned a password: the whole group goes.
        tuple(all_but(size, 1, *range(9, 14), 19) for size in (15, 19, 21)),  # type: ignore[arg-type]
    ),
    "drop patterns": Case(
        lambda: drop_sensitive(patterns=[r"\b\d{4}\b"]),
        tuple(all_but(size, 8, *range(9, 14)) for size in (15, 19, 21)),  # type: ignore[arg-type]
    ),
    "mask": Case(
        lambda: mask_sensitive(["swordfish"], [r"\b\d{4}\b"]),
        (all_but(15), all_but(19), all_but(21)),
        shown_as=redacted,
        stored_as=redacted,
    ),
    "summarize": Case(
        lambda: summarize_head(count_slowly, 8),
        ([0, summary(8), *range(9, 15)], [0, summary(13), *range(14, 19)], [0, summary(14), *range(15, 21)]),
    ),
    "summarize what is short": Case(
        lambda: summarize_head(count, 21), (all_but(15), all_but(19), all_but(21))
    ),
    "mask, then limit": Case(
        lambda: chain_callbacks(mask_sensitive(["swordfish"], [r"\b\d{4}\b"]), limit_history(7)),
        ([0, *range(9, 15)], [0, *range(14, 19)], [0, *range(15, 21)]),
        shown_as=redacted,
        stored_as=redacted,
    ),
    "drop, then summarize, then mask": Case(
        lambda: chain_callbacks(
            drop_sensitive(patterns=[r"\b4711\b"]),
            summarize_head(count, 5),
            mask_sensitive(["swordfish"]),
        ),
        # Left after dropping: 0-7 and 14; then 0-7 and 14-18; then 0-7 and 14-20.
        ([0, summary(6), 7, 14], [0, summary(9), 16, 17, 18], [0, summary(11), 18, 19, 20]),
        shown_as=redacted,
        stored_as=redacted,
    ),
    "summarize, then limit": Case(
        lambda: chain_callbacks(summarize_head(count, 8), limit_history(3)),
        ([0, summary(8), 14], [0, summary(13), 18], [0, summary(14), 20]),
    ),
}


@pytest.mark.parametrize("run_kind", ["run", "run_streamed"])
@pytest.mark.parametrize("name", CASES)
def test_the_model_sees_the_view_and_the_store_does_not(tmp_path: Path, name: str, run_kind: str) -> None:
    case, run_turn = CASES[name], RUNS[run_kind]
    with both_sessions(tmp_path) as sessions:
        for session in sessions:
            asyncio.run(session.add_items(HISTORY))
        found, expected = (
            play(session, TURNS, run_turn, session_input_callback=case.callback()) for session in sessions
        )
    assert found == expected
    stored = found.stored[-1]
    assert stored[:15] == HISTORY
    assert in_short(stored[15:]) == "UCOAUAUA"
    assert [stored[15], stored[19], stored[21]] == [case.stored_as(item) for item in STORED]
    first_calls = [found.shown[0], found.shown[2], found.shown[3]]
    for view, shown, new in zip(case.views, first_calls, (15, 19, 21), strict=True):
        items = [stored[entry] if isinstance(entry, int) else entry for entry in (*view, new)]
        assert shown == [case.shown_as(item) for item in items]
        assert find_orphans(shown, spare_newest_turn=False) == []
    assert found.shown[1] == [*found.shown[0], *stored[16:18]], "within a turn the view stays"


def test_a_limit_keeps_the_newest_of_a_history_that_starts_in_a_turn(tmp_path: Path) -> None:
    """As it does where the session's settings have a limit of their own."""
    story = Scenario(["hi"], lambda: [answer("hello")], "")
    with both_sessions(tmp_path, session_settings=SessionSettings(limit=11)) as (ours, _):
        asyncio.run(ours.add_items(HISTORY))
        record = play(ours, story, RUNS["run"], session_input_callback=limit_history(3))
    assert record.shown == [[HISTORY[14], message("hi")]]


@pytest.mark.parametrize("summarizer", [count, count_slowly])
def test_the_summarizer_gets_what_is_left_out(tmp_path: Path, summarizer: Any) -> None:
    seen: list[list[Item]] = []

    def remember(items: list[Item]) -> Any:
        seen.append([dict(item) for item in items])
        return summarizer(items)

    with both_sessions(tmp_path) as (ours, _):
        asyncio.run(ours.add_items(HISTORY))
        record = play(ours, TURNS, RUNS["run"], session_input_callback=summarize_head(remember, 8))
    stored = record.stored[-1]
    assert seen == [stored[1:9], stored[1:14], stored[1:15]]


# --- what is masked is masked whatever becomes of the turn ---

SECRETS = {
    "a guardrail before the model": Scenario(["weapon swordfish", "hi"], lambda: [answer("hello")], "UUA"),
    "a guardrail beside the model": Scenario(
        ["drugs swordfish", "hi"], lambda: [late_answer(), answer("hello")], "UUA"
    ),
    "an error": Scenario(["swordfish", "hi"], lambda: [outage(), answer("hello")], "UUA"),
    "an approval": Scenario(
        ["swordfish", approve, "hi"],
        lambda: [[call("pay", amount=1)], answer("ok"), answer("hello")],
        "UCOAUA",
    ),
    "a later approval": Scenario(
        ["swordfish", approve_elsewhere, "hi"],
        lambda: [[call("pay", amount=1)], answer("ok"), answer("hello")],
        "UCOAUA",
    ),
    "a handoff": Scenario(
        ["swordfish", "hi"],
        lambda: [[call("transfer_to_expert")], answer("ok"), answer("hello")],
        "UCOAUA",
    ),
    "parts": Scenario(
        [[{"role": "user", "content": [{"type": "input_text", "text": "swordfish"}]}]],
        lambda: [answer("ok")],
        "UA",
    ),
}


@pytest.mark.parametrize("run_kind", ["run", "run_streamed"])
@pytest.mark.parametrize("scenario", SECRETS)
def test_a_secret_is_neither_shown_nor_stored(tmp_path: Path, scenario: str, run_kind: str) -> None:
    story = SECRETS[scenario]
    with both_sessions(tmp_path) as (ours, _):
        callback = mask_sensitive(["swordfish"])
        record = play(ours, story, RUNS[run_kind], session_input_callback=callback)
    assert in_short(record.stored[-1]) == story.stored
    assert "[redacted]" in str(record.stored[-1][0])
    assert "swordfish" not in str(record)


def test_the_callers_own_input_is_left_as_it_is(tmp_path: Path) -> None:
    items = [message("swordfish"), {"role": "user", "content": [{"type": "input_text", "text": "swordfish"}]}]
    story = Scenario([items], lambda: [answer("ok")], "UUA")
    with both_sessions(tmp_path) as (ours, _):
        record = play(ours, story, RUNS["run"], session_input_callback=mask_sensitive(["swordfish"]))
    assert in_short(record.stored[-1]) == story.stored
    assert "swordfish" not in str(record)
    assert items[0] == message("swordfish")
    assert items[1]["content"] == [{"type": "input_text", "text": "swordfish"}]


HIDDEN = {
    "JSON": [called("c", "tell", word="密码"), returned("c", json.dumps({"word": "密码"}))],
    "search": [
        {"type": "web_search_call", "id": "ws", "status": "completed"}
        | {"action": {"type": "search", "query": "密码"}}
    ],
    "code": [
        {"type": "code_interpreter_call", "id": "ci", "status": "completed", "container_id": "cn"}
        | {"code": "密码", "outputs": []}
    ],
}


@pytest.mark.parametrize("callback", [mask_sensitive, drop_sensitive])
@pytest.mark.parametrize("hidden", ["JSON", "search", "code"])
def test_a_secret_is_found_wherever_it_stands(tmp_path: Path, hidden: str, callback: Any) -> None:
    story = Scenario(["hi"], lambda: [answer("hello")], "")
    with both_sessions(tmp_path) as (ours, _):
        asyncio.run(ours.add_items([message("hi"), *HIDDEN[hidden]]))
        record = play(ours, story, RUNS["run"], session_input_callback=callback(["密码"]))
    shown = json.dumps(record.shown, ensure_ascii=False)
    assert "密码" not in shown
    assert "\\u5bc6" not in shown


@pytest.mark.parametrize("callback", [mask_sensitive, drop_sensitive])
def test_what_is_no_text_is_left_as_it_is(tmp_path: Path, callback: Any) -> None:
    """A pattern for card numbers is met by chance in what is encoded, and a model refuses it when changed."""
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA+4711+AA", "detail": "auto"}
    history = [
        {"role": "user", "content": [picture]},
        thought(1) | {"encrypted_content": "gAAAAA+4711+AA"},
        said("a dot"),
    ]
    story = Scenario(["hi"], lambda: [answer("hello")], "")
    with both_sessions(tmp_path) as (ours, _):
        asyncio.run(ours.add_items(history))
        record = play(ours, story, RUNS["run"], session_input_callback=callback(patterns=[r"\b\d{4}\b"]))
    assert record.shown == [[*history, message("hi")]]
