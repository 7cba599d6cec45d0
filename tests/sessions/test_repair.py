"""Repair: what a model refuses goes, all else stays, in one step."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from recollect import (
    InMemorySession,
    RepairReport,
    SQLiteSession,
    find_orphans,
    repair,
)
from recollect.testing.contract import in_event_loop, message, texts

from ..histories import CALL_KINDS, Item, broken_histories, call_and_output, histories, is_injected, quick
from .sqlite.test_bad_input import run_sql


def answer(text: str) -> Item:
    return {"role": "assistant", "content": text}


def thought(name: str) -> Item:
    return {"type": "reasoning", "id": name, "summary": []}


def call(call_id: str) -> Item:
    return call_and_output("function_call", call_id)[0]


def output(call_id: str) -> Item:
    return call_and_output("function_call", call_id)[1]


async def repaired(items: list[Item]) -> tuple[list[Item], RepairReport]:
    session = InMemorySession("s")
    await session.add_items(items)
    report = await repair(session)
    return await session.get_items(), report


@pytest.mark.parametrize("kind", CALL_KINDS)
@in_event_loop
async def test_an_output_without_its_call_goes(kind: str) -> None:
    orphan = call_and_output(kind, "c")[1]
    left, report = await repaired([orphan, message("a"), orphan, answer("b")])
    assert left == [message("a"), answer("b")]
    assert report == RepairReport(orphan_outputs=[orphan, orphan])
    assert report.removed == 2


@pytest.mark.parametrize("kind", CALL_KINDS)
@in_event_loop
async def test_a_call_without_output_goes_except_in_the_newest_turn(kind: str) -> None:
    old, new = call_and_output(kind, "old")[0], call_and_output(kind, "new")[0]
    left, report = await repaired([message("a"), old, message("b"), new])
    assert left == [message("a"), message("b"), new]
    assert report == RepairReport(unanswered_calls=[old])


@in_event_loop
async def test_an_open_call_of_the_only_turn_stays_with_its_thought() -> None:
    for items in ([message("a"), thought("r"), call("c")], [thought("r"), call("c")]):
        assert await repaired(items) == (items, RepairReport())


@in_event_loop
async def test_an_output_before_its_call_mends_nothing() -> None:
    left, report = await repaired([message("a"), output("c"), call("c"), message("b")])
    assert left == [message("a"), message("b")]
    assert report == RepairReport(orphan_outputs=[output("c")], unanswered_calls=[call("c")])


@in_event_loop
async def test_reasoning_without_what_it_led_to_goes() -> None:
    left, report = await repaired([message("a"), thought("r1"), thought("r2"), message("b"), thought("r3")])
    assert left == [message("a"), message("b")]
    assert report == RepairReport(lone_reasoning=[thought("r1"), thought("r2"), thought("r3")])


@in_event_loop
async def test_reasoning_goes_with_the_call_it_led_to() -> None:
    left, report = await repaired([message("a"), thought("r"), call("c"), message("b")])
    assert left == [message("a"), message("b")]
    assert report == RepairReport(unanswered_calls=[call("c")], lone_reasoning=[thought("r")])


@in_event_loop
async def test_reasoning_stays_with_a_call_that_was_answered() -> None:
    items = [message("a"), thought("r"), call("open"), call("c"), output("c"), message("b")]
    left, report = await repaired(items)
    assert left == [message("a"), thought("r"), call("c"), output("c"), message("b")]
    assert report == RepairReport(unanswered_calls=[call("open")])


@in_event_loop
async def test_all_kinds_of_damage_at_once() -> None:
    items = [output("x"), message("a"), thought("r"), message("b"), call("y"), answer("fine"), message("c")]
    left, report = await repaired(items)
    assert left == [message("a"), message("b"), answer("fine"), message("c")]
    assert report == RepairReport([output("x")], [call("y")], [thought("r")])
    assert report.removed == 3
    assert str(report) == (
        "removed 1 outputs without a call, 1 calls without an output, "
        "1 reasoning items without a following item"
    )


@in_event_loop
async def test_nothing_to_repair_writes_nothing(tmp_path: Path) -> None:
    items = [message("a"), thought("r"), call("c"), output("c"), answer("b")]
    path = tmp_path / "s.db"
    async with SQLiteSession("s", path) as session:
        await session.add_items(items)
        run_sql(path, "UPDATE agent_sessions SET updated_at = '2020-01-01 00:00:00'")
        before = await session.read_after(0)
        report = await repair(session)
        assert await session.read_after(0) == before, "in the same positions"
        run_sql(path, "DELETE FROM agent_sessions WHERE updated_at > '2021-01-01'")
        assert await session.get_items() == items, "and not even touched"
    assert report == RepairReport()
    assert report.removed == 0
    assert str(report) == "nothing to repair"


@in_event_loop
async def test_what_stands_before_the_damage_keeps_its_position() -> None:
    async with SQLiteSession("s") as session:
        await session.add_items([message("a"), message("b"), output("x"), message("c")])
        before = await session.read_after(0)
        await repair(session)
        after = await session.read_after(0)
    assert after[:2] == before[:2]
    assert after[2].item == message("c")
    assert after[2].position > before[1].position


@in_event_loop
async def test_an_empty_session_needs_no_repair() -> None:
    assert await repaired([]) == ([], RepairReport())
    async with SQLiteSession("never used") as session:
        assert not (await repair(session)).removed


@quick
@given(broken_histories())
@in_event_loop
async def test_a_broken_history_is_mended_and_loses_only_what_was_broken(items: list[Item]) -> None:
    left, report = await repaired(items)
    assert find_orphans(left) == []
    assert report.removed == len(items) - len(left)
    rest = iter(items)
    assert all(any(item == other for other in rest) for item in left), "in the same order"
    removed = [*report.orphan_outputs, *report.unanswered_calls, *report.lone_reasoning]
    assert not any(item.get("role") for item in removed), "no message goes"
    assert not any(map(is_injected, left))
    assert (await repaired(left))[1] == RepairReport(), "once is enough"


@quick
@given(histories())
@in_event_loop
async def test_a_history_that_a_model_accepts_stays_as_it_is(items: list[Item]) -> None:
    assert await repaired(items) == (items, RepairReport())


@in_event_loop
async def test_repair_loses_nothing_that_is_added_meanwhile(tmp_path: Path) -> None:
    async with SQLiteSession("s", tmp_path / "s.db") as session:
        await session.get_items()  # the file is open: from now on, calls are taken in the order they are made
        adding = [session.add_items([output(f"orphan {n}"), message(n)]) for n in range(20)]
        repairing = [repair(session) for _ in range(20)]
        calls: list[Any] = [call for pair in zip(adding, repairing, strict=True) for call in pair]
        reports = (await asyncio.gather(*calls))[1::2]
        reports.append(await repair(session))
        assert texts(await session.get_items()) == [str(n) for n in range(20)]
        removed = [item["call_id"] for report in reports for item in report.orphan_outputs]
        assert sorted(removed) == sorted(f"orphan {n}" for n in range(20)), "each is reported once"


@in_event_loop
async def test_a_stored_nan_does_not_keep_the_rest_from_being_repaired(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteSession("s", path) as session:
        await session.add_items([output("x"), message("a")])
        data = '{"role": "user", "content": "b", "score": NaN}'
        run_sql(path, "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', ?)", data)
        assert (await repair(session)).orphan_outputs == [output("x")]
        assert texts(await session.get_items()) == ["a", "b"]
