"""A session with a strategy: its view, the methods that pass through, and its cost."""

import asyncio
import logging
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    InMemorySession,
    MissingAbilityError,
    RetryingSession,
    Rewritable,
    SessionSettings,
    SQLiteSession,
    repair,
    undo_turn,
)
from recollect.sessions.advanced.sqlite import AdvancedSQLiteSession
from recollect.sessions.encryption import EncryptedSession
from recollect.sessions.protocol import require_ability
from recollect.strategies.anchors import Anchor, Mark
from recollect.strategies.events import StrategyEvent
from recollect.strategies.session import StrategySession
from recollect.strategies.summarizers import SummaryRequest
from recollect.strategies.values import Compact, Strategy, Summarize, Trim
from recollect.strategies.views import view_of
from recollect.strategies.windows import split_at
from recollect.testing.contract import in_event_loop

from .generated import history
from .sessions import CountingSession, PlainSession, turn, turns

Item = dict[str, Any]
Open = Callable[[Path], Any]

SESSIONS: dict[str, Open] = {
    "in memory": lambda _: InMemorySession("s"),
    "sqlite": lambda folder: SQLiteSession("s", folder / "s.db"),
    "retrying": lambda folder: RetryingSession(SQLiteSession("s", folder / "s.db")),
    "with the contract alone": lambda _: PlainSession("s"),
}
STRATEGIES: dict[str, Strategy] = {
    "trim": Trim(4, 2),
    "trim by tokens": Trim(token_budget=300),
    "summarize": Summarize(4, 2),
    "compact": Compact(4, 2),
    "compact by tokens": Compact(token_budget=300, keep=1),
}
every_session = pytest.mark.parametrize("open_inner", SESSIONS.values(), ids=SESSIONS.keys())
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())


async def tell_ids(request: SummaryRequest) -> str:
    """A summary that names the turns it covers."""
    asked = [item["content"].split()[1] for item in request.items if item.get("role") == "user"]
    return " ".join([*([request.previous] if request.previous else []), *asked])


def expected_view(items: list[Item], strategy: Strategy) -> list[Item]:
    """The view of the pure function, with the summary that `tell_ids` would make."""
    shown = view_of(items, strategy)
    if not isinstance(strategy, Summarize) or len(shown) == len(items):
        return shown
    covered = items[: len(items) - len(shown)]
    asked = [item["content"].split()[1] for item in covered if item.get("role") == "user"]
    return view_of(items, strategy, summary=" ".join(asked))


@every_session
@every_strategy
@in_event_loop
async def test_a_view_is_what_the_pure_function_shows_and_the_log_is_whole(
    tmp_path: Path, open_inner: Open, strategy: Strategy
) -> None:
    inner = open_inner(tmp_path)
    async with StrategySession(inner, strategy, summarizer=tell_ids) as session:
        assert await session.get_items() == []
        for number in range(1, 15):
            await session.add_items(turn(number)[:1])
            await session.add_items(turn(number)[1:])
            assert await session.get_items() == expected_view(turns(1, number), strategy)
            assert await inner.get_items() == turns(1, number)
        again = StrategySession(inner, strategy, summarizer=tell_ids)
        assert await again.get_items() == await session.get_items(), "a new handle shows the same"
        assert session.summary_failures == 0


@every_strategy
@in_event_loop
async def test_two_handles_that_take_turns_show_the_same(tmp_path: Path, strategy: Strategy) -> None:
    handles = [
        StrategySession(SQLiteSession("s", tmp_path / "s.db"), strategy, summarizer=tell_ids)
        for _ in range(2)
    ]
    for number in range(1, 20):
        await handles[number % 2].add_items(turn(number))
        expected = expected_view(turns(1, number), strategy)
        assert [await handle.get_items() for handle in handles] == [expected, expected]
    for handle in handles:
        await handle.aclose()


@pytest.mark.parametrize("name", ["trim", "compact", "compact by tokens"])
@in_event_loop
async def test_histories_of_every_kind(tmp_path: Path, name: str) -> None:
    """Read after every few items, so that the cut also moves in the middle of turns."""
    for seed in range(20):
        items = history(seed)
        async with StrategySession(SQLiteSession(f"s{seed}", tmp_path / "s.db"), STRATEGIES[name]) as session:
            for start in range(0, len(items), 3):
                await session.add_items(items[start : start + 3])
                await session.get_items()
            assert await session.get_items() == view_of(items, STRATEGIES[name]), f"history {seed}"


# --- methods that see the stored history ---


@every_strategy
@in_event_loop
async def test_a_limit_and_a_pop_see_the_log_as_it_is(strategy: Strategy) -> None:
    session = StrategySession(InMemorySession("s"), strategy, summarizer=tell_ids)
    await session.add_items(turns(1, 9))
    assert len(await session.get_items()) <= 36
    assert await session.get_items(limit=30) == turns(1, 9)[-30:]
    assert await session.get_items(limit=1000) == turns(1, 9)
    assert await session.get_items(limit=0) == []
    for number in range(9, 0, -1):
        for item in reversed(turn(number)):
            assert await session.pop_item() == item
    assert await session.pop_item() is None
    assert await session.get_items() == []


@in_event_loop
async def test_no_strategy_passes_everything_through() -> None:
    session = StrategySession(InMemorySession("s", SessionSettings(limit=3)), None)
    await session.add_items(turns(1, 9))
    assert await session.get_items() == turns(1, 9)[-3:]
    assert await session.checkpoint() is False


def test_a_default_limit_is_refused() -> None:
    for settings in (SessionSettings(limit=5), {"limit": 5}):
        with pytest.raises(ValueError, match="limit"):
            StrategySession(InMemorySession("s", settings), Trim(4))


@pytest.mark.parametrize("strategy", ["trim", {"mode": "trim"}, Trim, 7])
def test_what_is_no_strategy_is_refused(strategy: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"strategy|max_user_turns"):
        StrategySession(InMemorySession("s"), strategy)


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("1", TypeError),
    ],
)
def test_a_timeout_that_makes_no_sense_is_refused(seconds: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="summary_timeout"):
        StrategySession(InMemorySession("s"), Trim(4), summary_timeout=seconds)


def test_the_abilities_of_the_wrapped_session_are_there(tmp_path: Path) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), Trim(4))
    for name in ("transform_items", "read_after", "add_batch", "get_metadata", "get_note", "take_lease"):
        assert callable(getattr(session, name))
    plain = StrategySession(PlainSession("s"), Trim(4))
    assert not hasattr(plain, "transform_items")
    assert not hasattr(plain, "_atomic_replace_items")
    with pytest.raises(MissingAbilityError, match="Rewritable"):
        require_ability(plain, Rewritable)


# --- cost ---


@pytest.mark.parametrize("name", ["trim", "trim by tokens", "summarize"])
@in_event_loop
async def test_a_read_costs_the_turns_it_shows(tmp_path: Path, name: str) -> None:
    """At any length of the history, in the handle that made the cut and in a new one."""
    counting = CountingSession(SQLiteSession("s", tmp_path / "s.db"))
    session = StrategySession(counting, STRATEGIES[name], summarizer=tell_ids)
    await counting.add_items([{"role": "system", "content": "Be brief."}])
    await counting.add_items(turns(1, 500))
    await session.get_items()
    for reader in (session, StrategySession(counting, STRATEGIES[name], summarizer=tell_ids)):
        counting.items_read = counting.notes_written = 0
        shown = await reader.get_items()
        assert counting.items_read <= len(shown) + 1, "one item more tells whether the cut is still right"
        assert counting.notes_written == 0
    counting.items_read = 0
    for number in range(501, 541):
        await session.add_items(turn(number))
        await session.get_items()
    assert counting.items_read < 40 * 4 * 16, "no turn costs a multiple of what a view shows"
    assert await counting.wrapped.get_items() == [{"role": "system", "content": "Be brief."}, *turns(1, 540)]


@in_event_loop
async def test_a_short_history_is_read_once(tmp_path: Path) -> None:
    counting = CountingSession(SQLiteSession("s", tmp_path / "s.db"))
    session = StrategySession(counting, Trim(10))
    await session.add_items(turns(1, 10))
    await session.get_items()
    counting.items_read = 0
    assert await session.get_items() == turns(1, 10)
    assert (counting.items_read, counting.notes_written) == (40, 0)


# --- changes that invalidate a cut ---


@every_session
@every_strategy
@in_event_loop
async def test_an_undo_past_the_cut(tmp_path: Path, open_inner: Open, strategy: Strategy) -> None:
    inner = open_inner(tmp_path)
    session = StrategySession(inner, strategy, summarizer=tell_ids)
    await session.add_items(turns(1, 12))
    await session.get_items()
    for _ in range(10 * 4):
        await session.pop_item()
    assert await session.get_items() == turns(1, 2)
    await session.add_items(turns(20, 30))
    items = [*turns(1, 2), *turns(20, 30)]
    assert await session.get_items() == expected_view(items, strategy)
    assert (
        await StrategySession(inner, strategy, summarizer=tell_ids).get_items() == await session.get_items()
    )


@every_strategy
@in_event_loop
async def test_a_history_that_was_replaced(tmp_path: Path, strategy: Strategy) -> None:
    inner = SQLiteSession("s", tmp_path / "s.db")
    session = StrategySession(inner, strategy, summarizer=tell_ids)
    await session.add_items(turns(1, 12))
    await session.get_items()
    await inner.replace_items(turns(31, 42))
    assert await session.get_items() == expected_view(turns(31, 42), strategy)
    await inner.transform_items(lambda items: [{"role": "system", "content": "new"}, *items[4:]])
    items = [{"role": "system", "content": "new"}, *turns(32, 42)]
    assert await session.get_items() == expected_view(items, strategy)


@every_strategy
@in_event_loop
async def test_a_history_that_was_cleared(tmp_path: Path, strategy: Strategy) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), strategy, summarizer=tell_ids)
    await session.add_items(turns(1, 12))
    await session.get_items()
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items(turns(1, 3))
    assert await session.get_items() == turns(1, 3)


@in_event_loop
async def test_a_repair_leaves_the_cut_and_an_undo_of_what_a_cut_leaves_voids_it(tmp_path: Path) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), Trim(4, 2))
    await session.add_items(
        [*turns(1, 5), {"type": "function_call_output", "call_id": "nobody", "output": "x"}]
    )
    assert len(await session.get_items()) == 8, "what has no partner is left out of the view"
    await repair(session)
    assert await session.get_items() == turns(4, 5)
    await undo_turn(session)
    assert await session.get_items() == turns(1, 4), "as if there had never been more"
    await session.add_items(turn(6))
    assert await session.get_items() == [*turn(4), *turn(6)]


@in_event_loop
async def test_items_that_were_revised_behind_the_cut(tmp_path: Path) -> None:
    inner = SQLiteSession("s", tmp_path / "s.db")
    session = StrategySession(inner, Summarize(4, 2), summarizer=tell_ids)
    await session.add_items(turns(1, 5))
    assert (await session.get_items())[1]["content"] == "1 2 3"
    await session.revise_items(lambda items: [None if n < 4 else item for n, item in enumerate(items)])
    await session.add_items(turn(6))
    assert (await session.get_items())[1]["content"] == "2 3 4"


@every_strategy
@in_event_loop
async def test_a_last_covered_item_that_is_another_now(tmp_path: Path, strategy: Strategy) -> None:
    """Its position is the same; only its content differs."""
    inner = SQLiteSession("s", tmp_path / "s.db")
    session = StrategySession(inner, strategy, summarizer=tell_ids)
    await session.add_items(turns(1, 12))
    await session.get_items()

    def rewrite(items: list[Item]) -> list[Item | None]:
        return [None if item == turn(2)[0] else {**item, "status": "completed"} for item in items]

    await inner.revise_items(rewrite)
    items = [item for item in rewrite(turns(1, 12)) if item is not None]
    assert await session.get_items() == expected_view(items, strategy)


@in_event_loop
async def test_the_end_of_a_history_may_change_between_reads(tmp_path: Path) -> None:
    """The scan of a window is cached, and must be dropped when the items are gone."""
    inner = SQLiteSession("s", tmp_path / "s.db")
    session = StrategySession(inner, Trim(6, 2))
    chance = random.Random(3)
    await session.add_items(turns(1, 7))
    for number in range(8, 200):
        await session.get_items()
        for _ in range(chance.randrange(3)):
            await session.pop_item()
        for item in chance.sample(turn(number), chance.randrange(4)):
            await session.add_items([item])
        assert await session.get_items() == await StrategySession(inner, Trim(6, 2)).get_items()


def test_a_cut_is_found_by_what_is_before_it() -> None:
    items = turns(1, 5)
    mark = Mark().extended(3, 12, turns(1, 3))
    window = split_at(items, Anchor(0, mark))
    assert window is not None
    assert window.items == turns(4, 5)
    assert split_at(turns(2, 6), Anchor(0, mark)) is None
    assert split_at([], Anchor(0, mark)) is None


@in_event_loop
async def test_strategies_do_not_share_a_cut() -> None:
    inner = InMemorySession("s")
    await inner.add_items(turns(1, 12))
    for strategy in (*STRATEGIES.values(), Trim(5, 2), Trim(4, 1), Trim(4), Compact(4, 1)):
        session = StrategySession(inner, strategy, summarizer=tell_ids)
        assert await session.get_items() == expected_view(turns(1, 12), strategy)


# --- odd input ---


@in_event_loop
async def test_corrupt_rows_hide_nothing_else(tmp_path: Path) -> None:
    for position in (1, 4, 8, 17, 30, 44):
        path = tmp_path / f"{position}.db"
        session = StrategySession(SQLiteSession("s", path), Trim(4, 2))
        await session.add_items(turns(1, 11))
        shown = await session.get_items()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE agent_messages SET message_data = '{broken' WHERE id = ?", (position,))
        connection.close()
        again = await session.get_items()
        assert [item for item in shown if item in again] == again
        await session.aclose()


@in_event_loop
async def test_it_says_so_when_what_is_kept_exceeds_the_budget(caplog: pytest.LogCaptureFixture) -> None:
    session = StrategySession(InMemorySession("s"), Trim(token_budget=50, keep_last_user_turns=2))
    await session.add_items(turns(1, 2))
    with caplog.at_level(logging.WARNING, logger="recollect"):
        for _ in range(3):
            assert await session.get_items() == turns(1, 2)
    assert len(caplog.records) == 1
    assert "budget 50" in caplog.text
    assert "question" not in caplog.text


@in_event_loop
async def test_a_tokenizer_counts() -> None:
    session = StrategySession(InMemorySession("s"), Trim(token_budget=100), tokenizer=lambda text: len(text))
    await session.add_items(turns(1, 4))
    assert await session.get_items() == turn(4)


# --- checkpoints ---


@pytest.mark.parametrize("name", ["in memory", "sqlite", "retrying"])
@every_strategy
@in_event_loop
async def test_a_checkpoint_stores_what_is_shown(tmp_path: Path, name: str, strategy: Strategy) -> None:
    inner = SESSIONS[name](tmp_path)
    session = StrategySession(inner, strategy, summarizer=tell_ids)
    await session.add_items(turns(1, 3))
    assert await session.checkpoint() is False, "there is nothing to leave out"
    await session.add_items(turns(4, 12))
    shown = await session.get_items()
    assert await session.checkpoint() is True
    assert await inner.get_items() == shown
    await session.add_items(turn(13))
    assert (await session.get_items())[-4:] == turn(13)


@in_event_loop
async def test_a_checkpoint_waits_for_no_summary_that_cannot_be_made() -> None:
    async def fail(_request: SummaryRequest) -> str:
        raise RuntimeError

    session = StrategySession(InMemorySession("s"), Summarize(4, 2), summarizer=fail)
    await session.add_items(turns(1, 12))
    assert await session.checkpoint() is False
    assert await session.get_items(1000) == turns(1, 12), "nothing was lost"


@in_event_loop
async def test_a_checkpoint_loses_nothing_that_comes_meanwhile(tmp_path: Path) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), Trim(4, 2))
    await session.add_items(turns(1, 12))
    writing = asyncio.gather(*(session.add_items(turn(number)) for number in range(13, 30)))
    await session.checkpoint()
    await writing
    stored = await session.get_items(1000)
    said = {item["content"] for item in stored if item.get("role") == "assistant"}
    assert {f"answer {number}" for number in range(12, 30)} <= said


@in_event_loop
async def test_a_checkpoint_needs_a_session_that_can_be_rewritten() -> None:
    with pytest.raises(MissingAbilityError, match="Rewritable"):
        await StrategySession(PlainSession("s"), Trim(4)).checkpoint()


# --- callbacks ---


@pytest.mark.parametrize("is_async", [False, True])
@in_event_loop
async def test_a_compaction_is_told_once(tmp_path: Path, is_async: bool) -> None:
    events: list[StrategyEvent] = []

    async def note(event: StrategyEvent) -> None:
        await asyncio.sleep(0)
        events.append(event)

    handles = [
        StrategySession(
            SQLiteSession("s", tmp_path / "s.db"),
            Compact(4, 2, exclude_tools=["other"]),
            on_compaction=note if is_async else events.append,
        )
        for _ in range(2)
    ]
    await handles[0].add_items([{"role": "system", "content": "Be brief."}, *turns(1, 5)])
    for handle in (*handles, *handles):
        await handle.get_items()
    (event,) = events
    assert (event.kind, event.session_id, event.trigger) == ("compaction", "s", "turns")
    assert (event.turns_before, event.turns_after) == (5, 2)
    assert (event.items_before, event.items_after) == (21, 21)
    assert event.turns == range(1, 4)
    assert event.call_ids == ("c1", "c2", "c3")
    assert event.tokens_before > 0
    await handles[1].add_items(turns(6, 8))
    for handle in handles:
        await handle.get_items()
    assert [event.turns for event in events] == [range(1, 4), range(4, 7)]
    for handle in handles:
        await handle.aclose()


@in_event_loop
async def test_a_callback_that_fails_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_event: StrategyEvent) -> None:
        raise RuntimeError("a secret")

    session = StrategySession(InMemorySession("s"), Compact(4, 2), on_compaction=fail)
    await session.add_items(turns(1, 5))
    assert len(await session.get_items()) == 20
    assert "RuntimeError" in caplog.text
    assert "a secret" not in caplog.text


def test_it_works_in_one_event_loop_after_another(tmp_path: Path) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), Summarize(4, 2), summarizer=tell_ids)
    for number in range(1, 14):
        asyncio.run(session.add_items(turn(number)))
        shown = asyncio.run(session.get_items())
        assert shown == expected_view(turns(1, number), Summarize(4, 2))
    asyncio.run(session.aclose())


# --- branches ---


def advanced(path: Path) -> AdvancedSQLiteSession:
    return AdvancedSQLiteSession(session_id="s", db_path=path / "s.db")


def encrypted_advanced(path: Path) -> EncryptedSession:
    return EncryptedSession("s", advanced(path), "secret")


@pytest.mark.parametrize("open_inner", [advanced, encrypted_advanced])
@every_strategy
@in_event_loop
async def test_every_branch_has_a_cut_of_its_own(
    tmp_path: Path, open_inner: Open, strategy: Strategy
) -> None:
    session = StrategySession(open_inner(tmp_path), strategy, summarizer=tell_ids)
    await session.add_items(turns(1, 12))
    on_main = await session.get_items()
    assert on_main == expected_view(turns(1, 12), strategy)
    branch = await session.create_branch_from_turn(3)
    assert await session.get_items() == turns(1, 2)
    await session.add_items(turns(21, 30))
    on_branch = await session.get_items()
    assert on_branch == expected_view([*turns(1, 2), *turns(21, 30)], strategy)
    for _ in range(2):
        await session.switch_to_branch("main")
        assert await session.get_items() == on_main
        await session.switch_to_branch(branch)
        assert await session.get_items() == on_branch
    again = StrategySession(open_inner(tmp_path), strategy, summarizer=tell_ids)
    assert await again.get_items() == on_branch, "the current branch is remembered, and its cut"
    await again.aclose()
    await session.aclose()


@in_event_loop
async def test_the_summary_of_an_encrypted_session_is_stored_encrypted(tmp_path: Path) -> None:
    inner = EncryptedSession("s", SQLiteSession("s", tmp_path / "s.db"), "secret")

    async def tell(_request: SummaryRequest) -> str:
        return "the parcel is in Leipzig"

    async with StrategySession(inner, Summarize(4, 2), summarizer=tell) as session:
        await session.add_items(turns(1, 5))
        assert (await session.get_items())[1]["content"] == "the parcel is in Leipzig"
    for file in tmp_path.iterdir():
        assert b"Leipzig" not in file.read_bytes()
