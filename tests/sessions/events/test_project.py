"""Projecting sessions: what is new is added once, whatever happens to the session in between."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Agent, RunConfig, Runner
from agents.extensions.memory import EncryptedSession as TheirEncryptedSession
from agents.testing import ScriptedModel
from agents_sdk.scenarios import add, answer, call, thought
from hypothesis import given
from hypothesis import strategies as st

from histories import quick
from recollect import (
    AdvancedSQLiteSession,
    InMemorySession,
    RedisSession,
    RetryingSession,
    SessionSettings,
    SQLiteSession,
    compress_history,
    fingerprint,
    undo_turn,
)
from recollect.sessions.encryption import EncryptedSession
from recollect.sessions.events import ConversationEvent, EventLog
from recollect.sessions.events.log import _delete
from recollect.strategies.session import StrategySession
from recollect.strategies.values import Summarize, Trim
from recollect.testing.contract import in_event_loop, message

from ...strategies.sessions import CountingSession, PlainSession, turn, turns
from .databases import Somewhere

Item = dict[str, Any]
Open = Callable[[Path], Any]

SESSIONS: dict[str, Open] = {
    "in memory": lambda _: InMemorySession("s"),
    "sqlite": lambda folder: SQLiteSession("s", folder / "s.db"),
    "plain": lambda _: PlainSession("s"),
    "the SDK's": lambda folder: agents.SQLiteSession("s", folder / "s.db"),
    "retrying": lambda folder: RetryingSession(SQLiteSession("s", folder / "s.db")),
    "encrypted": lambda folder: EncryptedSession("s", SQLiteSession("s", folder / "s.db"), "key", ttl=None),
    "encrypted by the SDK": lambda folder: TheirEncryptedSession(
        "s", SQLiteSession("s", folder / "s.db"), "key"
    ),
    "advanced": lambda folder: AdvancedSQLiteSession(session_id="s", db_path=folder / "s.db"),
    "with a limit": lambda _: InMemorySession("s", SessionSettings(limit=2)),
    "a strategy over positions": lambda _: StrategySession(InMemorySession("s"), Trim(2)),
    "a strategy over none": lambda _: StrategySession(PlainSession("s"), Trim(2)),
}
REWRITABLE = [name for name in SESSIONS if name not in ("plain", "the SDK's", "encrypted by the SDK")][:-1]


@pytest.fixture(params=SESSIONS)
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return SESSIONS[request.param](tmp_path)


def said(events: list[ConversationEvent]) -> list[str | None]:
    return [event.text for event in events]


async def logged(log: EventLog, name: str = "s") -> list[ConversationEvent]:
    """All events, after a check that their numbers have no gaps."""
    events = await log.read(name, limit=None)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


@in_event_loop
async def test_what_is_new_is_added_once(session: Any) -> None:
    async with EventLog(":memory:") as log:
        assert await log.project(session) == []
        everything: list[Item] = []
        for number in range(1, 6):
            await session.add_items(turn(number))
            everything += turn(number)
            added = await log.project(session)
            assert [event.fingerprint for event in added] == [fingerprint(item) for item in turn(number)]
            assert await log.project(session) == [], "a second time adds nothing"
        found = await logged(log)
        assert [event.fingerprint for event in found] == [fingerprint(item) for item in everything]
        assert found[2].call_output == "result 1 ", "encrypted or not"
        assert found[2].tool_name == "look_up"


@in_event_loop
async def test_two_yes_are_two_events(session: Any) -> None:
    async with EventLog(":memory:") as log:
        await session.add_items([message("yes")])
        await log.project(session)
        await session.add_items([message("yes"), message("yes")])
        await log.project(session)
        assert said(await logged(log)) == ["yes", "yes", "yes"]


HIDING: dict[str, Open] = {
    "a limit": lambda folder: agents.SQLiteSession(
        "s", folder / "s.db", session_settings=agents.SessionSettings(limit=2)
    ),
    "a limit, and positions": lambda _: InMemorySession("s", SessionSettings(limit=2)),
    "a strategy": lambda _: StrategySession(PlainSession("s"), Trim(2)),
    "a strategy, and positions": lambda _: StrategySession(InMemorySession("s"), Trim(2)),
}


@pytest.mark.parametrize("kind", HIDING)
@in_event_loop
async def test_what_a_session_does_not_show_is_projected_too(tmp_path: Path, kind: str) -> None:
    session = HIDING[kind](tmp_path)
    await session.add_items(turns(1, 10))
    assert len(await session.get_items()) < 40
    async with EventLog(":memory:") as log:
        assert len(await log.project(session)) == 40
        assert await log.project(session) == []


@in_event_loop
async def test_sessions_in_redis(redis_url: str, prefix: str) -> None:
    session = RedisSession.from_url("s", url=redis_url, key_prefix=prefix)
    async with session, EventLog(":memory:") as log:
        await session.add_items(turns(1, 3))
        assert len(await log.project(session)) == 12
        await session.pop_item()
        await session.add_items([message("yes")])
        assert said(await log.project(session)) == ["yes"]
        await session.replace_items([message("a summary"), *turns(3, 3), message("yes")])
        assert said(await log.project(session)) == ["a summary"]
        await session.clear_session()
        await session.add_items([message("anew"), message("anew")])
        assert said(await log.project(session)) == ["anew", "anew"]
        assert len(await logged(log)) == 16


@pytest.mark.parametrize("kind", REWRITABLE)
@in_event_loop
async def test_a_rewritten_session_does_not_replay_old_events(tmp_path: Path, kind: str) -> None:
    session = SESSIONS[kind](tmp_path)
    async with EventLog(":memory:") as log:
        await session.add_items([*turns(1, 5), message("yes"), message("yes")])
        await log.project(session)
        await session.replace_items([message("a summary"), *turns(4, 5), message("yes"), message("yes")])
        await session.add_items([message("yes")])
        assert said(await log.project(session)) == ["a summary", "yes"]
        assert await log.project(session) == []
        assert len(await logged(log)) == 24


@in_event_loop
async def test_what_came_after_a_rewrite_is_read_alone_again(tmp_path: Path) -> None:
    session = CountingSession(SQLiteSession("s", tmp_path / "s.db"))
    async with EventLog(":memory:") as log:
        await session.add_items(turns(1, 50))
        await log.project(session)
        await session.wrapped.replace_items(turns(21, 50))  # type: ignore[attr-defined]
        await log.project(session)
        session.items_read = 0
        await session.add_items(turn(51))
        assert len(await log.project(session)) == 4
        assert session.items_read == 8, "the new ones, and the few that tell that all stands"


@in_event_loop
async def test_the_cost_is_flat_in_the_length_of_the_session(somewhere: Somewhere) -> None:
    read = []
    async with somewhere.open(EventLog) as log:
        for length in (5, 500):
            session = CountingSession(InMemorySession(f"of {length}"))
            await session.add_items(turns(1, length))
            await log.project(session)
            session.items_read = 0
            await session.add_items(turn(length + 1))
            assert len(await log.project(session)) == 4
            assert await log.project(session) == []
            read.append(session.items_read)
    assert read == [12, 12]


@in_event_loop
async def test_undone_and_said_again(tmp_path: Path) -> None:
    async with SQLiteSession("s", tmp_path / "s.db") as session, EventLog(":memory:") as log:
        await session.add_items(turns(1, 3))
        await log.project(session)
        await undo_turn(session)
        assert await log.project(session) == [], "nothing is new, and nothing is forgotten"
        await session.add_items(turn(4))
        assert len(await log.project(session)) == 4
        assert len(await logged(log)) == 16
        await compress_history(session, 5)
        assert await log.project(session) == []


@in_event_loop
async def test_a_rewind_that_takes_items_back_and_adds_them_again(tmp_path: Path) -> None:
    async with SQLiteSession("s", tmp_path / "s.db") as session, EventLog(":memory:") as log:
        await session.add_items(turns(1, 2))
        await log.project(session)
        items = [await session.pop_item() for _ in range(3)]
        await session.add_items(items[::-1])
        assert await log.project(session) == []


@in_event_loop
async def test_a_cleared_session_begins_again() -> None:
    """Positions may begin again too, as those of a session in memory do with the process."""
    async with EventLog(":memory:") as log:
        first = InMemorySession("s")
        await first.add_items([message(text) for text in ("hi", "yes", "no", "yes", "bye")])
        await log.project(first)
        second = InMemorySession("s")
        await second.add_items([message(text) for text in ("hello", "well", "so", "maybe", "bye")])
        await second.add_items([message("really")])
        assert said(await log.project(second)) == ["hello", "well", "so", "maybe", "really"]
        await second.clear_session()
        assert await log.project(second) == []
        await second.add_items([message("anew")])
        assert said(await log.project(second)) == ["anew"]


@in_event_loop
async def test_branches_share_events(tmp_path: Path) -> None:
    session = AdvancedSQLiteSession(session_id="s", db_path=tmp_path / "s.db")
    async with session, EventLog(":memory:") as log:
        await session.add_items(turns(1, 3))
        await log.project(session)
        await session.create_branch_from_turn(3, "other")
        assert await log.project(session) == []
        await session.add_items(turn(30))
        assert len(await log.project(session)) == 4
        await session.switch_to_branch("main")
        assert await log.project(session) == []
        await session.add_items(turn(4))
        assert len(await log.project(session)) == 4
        assert len(await logged(log)) == 20


@in_event_loop
async def test_a_checkpoint_adds_the_summary_that_it_stores() -> None:
    async def summarize(_request: Any) -> str:
        return "they talked"

    session = StrategySession(InMemorySession("s"), Summarize(3, 2), summarizer=summarize)
    async with session, EventLog(":memory:") as log:
        for number in range(1, 6):
            await session.add_items(turn(number))
            await session.get_items()
        assert len(await log.project(session)) == 20, "what was said, and not what the model sees of it"
        assert await session.checkpoint()
        added = await log.project(session)
        assert [event.role for event in added] == ["user", "assistant"]
        assert added[1].text == "they talked"


@in_event_loop
async def test_what_was_appended_without_positions_is_found_again() -> None:
    async with EventLog(":memory:") as log:
        session = InMemorySession("s")
        await session.add_items(turns(1, 2))
        await log.append("s", turns(1, 2), response_id="resp_1")
        assert await log.project(session) == []
        await session.add_items(turn(3))
        await log.append("s", turn(3))
        await session.add_items(turn(4))
        assert len(await log.project(session)) == 4
        assert [event.position for event in await logged(log)] == list(range(1, 17))


@in_event_loop
async def test_a_conversation_of_another_name_than_the_session() -> None:
    async with EventLog(":memory:") as log:
        session = InMemorySession("s")
        await session.add_items([message("hi"), {"role": "assistant", "content": "hello"}])
        added = await log.project(session, "c", response_id="resp_1", agent="Desk", model="m")
        assert [(event.conversation_id, event.model) for event in added] == [("c", None), ("c", "m")]
        assert await log.count("s") == 0
        with pytest.raises(ValueError, match="conversation_id"):
            await log.project(session, "")


@in_event_loop
async def test_items_of_any_shape_are_projected_once(somewhere: Somewhere) -> None:
    from recollect.testing.contract import ODD_ITEMS

    for session in (InMemorySession("positions"), PlainSession("none")):
        async with somewhere.open(EventLog) as log:
            await session.add_items([*ODD_ITEMS, *ODD_ITEMS])
            added = await log.project(session)
            assert len(added) == 2 * len(ODD_ITEMS)
            assert await log.read(session.session_id) == added
            assert await log.project(session) == []
            await session.add_items(ODD_ITEMS)
            assert len(await log.project(session)) == len(ODD_ITEMS)


@in_event_loop
async def test_a_long_session_moves_whole(shared: Somewhere) -> None:
    """Thousands of positions change at once."""
    session = InMemorySession("s")
    async with shared.open(EventLog) as log:
        await session.add_items([message(number) for number in range(2_500)])
        assert len(await log.project(session)) == 2_500
        await session.replace_items([message("first"), *[message(number) for number in range(2_500)]])
        assert said(await log.project(session)) == ["first"]
        assert [event.position for event in await logged(log)] == [*range(2_502, 5_002), 2_501]


# --- many at once ---


@in_event_loop
async def test_projections_at_once_add_each_item_once(shared: Somewhere) -> None:
    session = InMemorySession("s")
    logs = [shared.open(EventLog) for _ in range(4)]

    async def project(log: EventLog) -> int:
        added = 0
        for _ in range(15):
            await session.add_items([message("yes"), message("no")])
            added += len(await log.project(session))
        return added

    counts = await asyncio.gather(*(project(log) for log in logs))
    rest = await logs[0].project(session)
    assert sum(counts) + len(rest) == 4 * 15 * 2
    events = await logged(logs[0])
    assert said(events) == ["yes", "no"] * 60, "in the order of the session"
    assert [event.position for event in events] == list(range(1, 121))
    for log in logs:
        await log.aclose()


@in_event_loop
async def test_projecting_appending_and_deleting_at_once(shared: Somewhere) -> None:
    session = InMemorySession("s")
    await session.add_items(turns(1, 30))
    logs = [shared.open(EventLog) for _ in range(3)]

    async def append() -> None:
        for number in range(20):
            await logs[0].append("s", [message(f"beside {number}")])

    async def project() -> None:
        for _ in range(20):
            await logs[1].project(session)

    async def delete() -> None:
        for _ in range(5):
            await logs[2].delete("s")
            await asyncio.sleep(0.01)

    await asyncio.gather(append(), project(), delete())
    await logs[0].project(session)
    events = await logged(logs[0])
    counted = Counter(event.fingerprint for event in events if not (event.text or "").startswith("beside"))
    assert counted == Counter(map(fingerprint, turns(1, 30))), "each once"
    for log in logs:
        await log.aclose()


def test_deleting_a_log_without_a_head_touches_no_events() -> None:
    """Nothing locks them: a writer may add the head and its first events in between, and both must stay."""
    script = _delete("s")
    next(script)
    with pytest.raises(StopIteration) as done:
        script.send([])
    assert done.value.value == 0


@in_event_loop
async def test_a_projection_that_is_cancelled_has_happened_or_not(shared: Somewhere) -> None:
    session = InMemorySession("s")
    async with shared.open(EventLog) as log:
        for number in range(30):
            await session.add_items(turn(number))
            projecting = asyncio.create_task(log.project(session))
            await asyncio.sleep(0.0005 * (number % 6))
            projecting.cancel()
            await asyncio.gather(projecting, return_exceptions=True)
            assert await log.count("s") % 4 == 0, "a batch is whole or absent"
        await log.project(session)
        assert [event.position for event in await logged(log)] == list(range(1, 121))


# --- anything may happen ---

_WORDS = st.sampled_from(["yes", "no", "well"])
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "pop", "rewrite", "drop", "shuffle", "clear", "project"]), _WORDS
    ),
    max_size=25,
)


@pytest.mark.parametrize("kind", ["in memory", "sqlite"])
def test_whatever_happens_to_a_session(tmp_path: Path, kind: str) -> None:
    """A model of it: what the session holds is in the log at least as often, and nothing comes twice."""

    @quick
    @given(_STEPS)
    def check(steps: list[tuple[str, str]]) -> None:
        runner.run(play(steps))

    async def play(steps: list[tuple[str, str]]) -> None:
        await session.clear_session()
        await log.delete("s")
        added: Counter[str] = Counter()
        for step, word in steps:
            await change(step, word, added)
        await log.project(session)
        assert await log.project(session) == []
        held = Counter(item["content"] for item in await session.get_items())
        stored = Counter(event.text for event in await logged(log))
        assert held <= stored, "what is there has its event"
        assert stored <= added, "nothing was made up or replayed"

    async def change(step: str, word: str, added: Counter[str]) -> None:
        match step:
            case "add":
                added[word] += 1
                await session.add_items([message(word)])
            case "pop":
                await session.pop_item()
            case "rewrite":
                added["head"] += 1
                await session.replace_items([message("head"), *await session.get_items()])
            case "drop":
                await session.transform_items(lambda items: items[1:])
            case "shuffle":
                await session.transform_items(lambda items: items[::-1])
            case "clear":
                await session.clear_session()
            case "project":
                await log.project(session)

    session, log = SESSIONS[kind](tmp_path), EventLog(":memory:")
    with asyncio.Runner() as runner:
        check()
        runner.run(session.aclose())
        runner.run(log.aclose())


# --- in the real Runner ---


@in_event_loop
async def test_the_events_of_a_run(tmp_path: Path) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), Trim(2))
    async with session, EventLog(tmp_path / "s.db") as log:
        for number in range(6):
            model = ScriptedModel(
                [[thought("sum"), call("add", f"c{number}", a=number, b=1)], answer("there")]
            )
            agent = Agent(name="Desk", model=model, tools=[add])
            config = RunConfig(tracing_disabled=True)
            result = await Runner.run(agent, f"add {number} and 1", session=session, run_config=config)
            added = await log.project(
                session, response_id=result.last_response_id, agent=result.last_agent.name, model="scripted"
            )
            assert [event.item_type for event in added] == [
                "message",
                "reasoning",
                "function_call",
                "function_call_output",
                "message",
            ]
            user, reasoning, called, output, answered = added
            assert (user.role, user.text, user.model) == ("user", f"add {number} and 1", None)
            assert reasoning.reasoning_text == "sum"
            assert (called.tool_name, called.tool_call_id, called.model) == ("add", f"c{number}", "scripted")
            assert (output.tool_name, output.call_output) == ("add", str(number + 1))
            assert (answered.role, answered.text, answered.agent) == ("assistant", "there", "Desk")
        assert len(await logged(log)) == 30
