"""Advanced sessions in the real Runner: tools, handoffs, branches between runs, and the SDK's wrappers."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import RunConfig, Runner
from agents.extensions.memory import AdvancedSQLiteSession as SDKSession
from agents.extensions.memory import EncryptedSession
from agents.testing import ScriptedModel

from recollect.testing.contract import close, in_event_loop

from ...agents_sdk.scenarios import RUNS, SCENARIOS, answer, call, desk, in_short, play, thought
from ...agents_sdk.test_compaction import Compactor, compacting, server
from .database import (
    Database,
    FileDatabase,
    MemoryDatabase,
    assert_consistent,
    branch_names,
    histories,
    said,
    turns,
)

__all__ = ["server"]  # a fixture

UNTRACED = RunConfig(tracing_disabled=True)


@asynccontextmanager
async def opened(database: Database, **options: Any) -> Any:
    async with database.open(**options) as session:
        assert isinstance(session, agents.Session)
        yield session
        await assert_consistent(session)


# --- runs ---


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_conversation_is_what_it_is_on_the_sdks_advanced_session(scenario: str) -> None:
    story = SCENARIOS[scenario]
    ours, theirs = MemoryDatabase().open(), SDKSession(session_id="s", create_tables=True)
    assert play(ours, story, RUNS["run"]) == play(theirs, story, RUNS["run"])
    asyncio.run(assert_consistent(ours))
    ours.close()
    theirs.close()


@pytest.mark.parametrize("kind", RUNS)
def test_tools_and_handoffs_in_every_kind_of_run(database: Database, kind: str) -> None:
    story = SCENARIOS["a handoff and tools"]
    session = database.open()
    record = play(session, story, RUNS[kind])

    async def look() -> None:
        assert in_short(record.stored[-1]) == story.stored
        assert await session.get_tool_usage() == [
            ("add", 1, 1), ("transfer_to_expert", 1, 1), ("weather", 2, 1), ("transfer_to_expert", 1, 2)
        ]  # fmt: skip
        assert [len(items) for items in (await session.get_conversation_by_turns()).values()] == [12, 4]
        await assert_consistent(session)
        await close(session)

    asyncio.run(look())


async def explore(session: Any) -> list[Any]:
    """A conversation with branches in between; what the model was shown each time, and what is stored."""
    model = ScriptedModel([
        answer("hello"),
        [thought("sum"), call("add", "a", a=1, b=2)],
        answer("3"),
        [call("transfer_to_expert", "t")],
        answer("sunny"),
        answer("as before"),
        answer("bye"),
    ])  # fmt: skip
    agent = desk(model)

    async def say(text: str) -> None:
        await Runner.run(agent, text, session=session, run_config=UNTRACED)

    await say("hi")
    await say("1+2?")
    await session.create_branch_from_turn(2, "weather")
    await say("expert!")
    await session.create_branch_from_turn(2, "again")
    await say("and?")
    await session.switch_to_branch("main")
    await say("bye")
    model.assert_complete()
    stored = {name: await session.get_items(branch_id=name) for name in ("main", "weather", "again")}
    return [stored, [call.input for call in model.calls]]


@in_event_loop
async def test_branches_between_runs_are_as_on_the_sdks_session(database: Database) -> None:
    theirs = SDKSession(session_id="s", create_tables=True)
    async with opened(database) as session:
        stored, shown = await explore(session)
        assert [stored, shown] == await explore(theirs)
        assert {name: in_short(items) for name, items in stored.items()} == {
            "main": "UAURCOAUA",
            "weather": "UAUCOA",
            "again": "UAUA",
        }
        assert in_short(shown[3]) == "UAU", "on the branch, the model knows nothing of the sum"
        assert await session.get_tool_usage("main") == [("add", 1, 2)]
        assert await session.get_tool_usage("weather") == [("transfer_to_expert", 1, 2)]
    theirs.close()


@in_event_loop
async def test_runs_are_seen_again_turn_by_turn_and_compared(database: Database) -> None:
    async with opened(database) as session:
        stored, _ = await explore(session)
        main = stored["main"]
        assert [in_short(await session.get_items(at_turn=turn)) for turn in range(4)] == [
            "", "UA", "UAURCOA", "UAURCOAUA"
        ]  # fmt: skip
        assert await session.get_items(at_turn=2) == main[:7]
        assert await session.get_items(at_turn=1, branch_id="weather") == main[:2]
        diff = await session.diff_branches("weather")
        assert (diff.first, diff.second, diff.common_items, diff.common_turns) == ("weather", "main", 2, 1)
        assert (diff.only_in_first, diff.only_in_second) == (stored["weather"][2:], main[2:])


@in_event_loop
async def test_runs_at_once_keep_their_items_in_order(database: Database) -> None:
    async with opened(database) as session:
        models = [ScriptedModel([[call("add", f"c{n}", a=n, b=n)], answer(f"a{n}")]) for n in range(6)]
        await asyncio.gather(
            *(
                Runner.run(desk(model), f"q{number}", session=session, run_config=UNTRACED)
                for number, model in enumerate(models)
            )
        )
        items = await session.get_items()
        assert sorted(in_short(items)) == sorted("UCOA" * 6)
        for number in range(6):
            calls = [in_short([item]) for item in items if item.get("call_id") == f"c{number}"]
            assert calls == ["C", "O"]


# --- within the SDK's wrappers ---


@pytest.mark.parametrize("kind", ["run", "run_streamed"])
def test_inside_the_sdks_encrypted_session(database: Database, kind: str) -> None:
    story = SCENARIOS["a handoff and tools"]
    underlying = database.open()
    encrypted = EncryptedSession("s", underlying, encryption_key="secret")
    theirs = SDKSession(session_id="s", create_tables=True)

    async def prepare() -> None:
        await underlying.add_items([said("user", "in the clear")])
        await underlying.create_branch_from_turn(1, "secret")

    async def look() -> None:
        assert all("__enc__" in item for item in await underlying.get_items())
        assert await underlying.get_items(branch_id="main") == [said("user", "in the clear")]
        await encrypted.pop_item()
        assert await encrypted.get_items() == expected.stored[-1][:-1]
        await encrypted.clear_session()
        assert await histories(underlying) == {}
        await close(underlying)

    asyncio.run(prepare())
    expected = play(theirs, story, RUNS[kind])
    assert play(encrypted, story, RUNS[kind]) == expected
    asyncio.run(look())
    theirs.close()


@in_event_loop
async def test_inside_the_sdks_compaction_session(database: Database, server: Compactor) -> None:
    """What it replaces is the current branch; the others keep what they show."""
    history = turns(1, 2, 3, 4, 5, 6)
    async with opened(database) as session:
        await session.add_items(history)
        await session.create_branch_from_turn(6, "b")
        async with compacting(server, session) as wrapper:
            await wrapper.run_compaction({"force": True})
            assert in_short(await session.get_items()) == "UUUUUK"
            assert await session.get_items(branch_id="main") == history
            model = ScriptedModel([answer("hello"), answer("again")])
            for text in ("hi", "hi"):
                await Runner.run(desk(model), text, session=wrapper, run_config=UNTRACED)
            assert in_short(await session.get_items()).startswith("UUUUU")
        assert [request["input"] for request in server.requests][:1] == [turns(1, 2, 3, 4, 5)]
        assert await session.get_items(branch_id="main") == history
        assert await branch_names(session) == ["main", "b"]


@in_event_loop
async def test_a_default_limit_shows_the_newest_of_the_branch(database: Database) -> None:
    async with opened(database, session_settings={"limit": 3}) as session:
        await session.add_items(turns(1, 2, 3))
        await session.create_branch_from_turn(3, "b")
        model = ScriptedModel([answer("hello")])
        await Runner.run(desk(model), "hi", session=session, run_config=UNTRACED)
        assert model.calls[0].input == [*turns(1, 2)[1:], said("user", "hi")]
        assert len(await session.get_items(limit=100)) == 6
        assert len(await session.get_items(branch_id="main", limit=100)) == 6


def test_a_file_is_used_by_runs_in_the_event_loops_of_several_threads(tmp_path: Path) -> None:
    session = FileDatabase(tmp_path / "s.db").open()

    def converse(number: int) -> None:
        model = ScriptedModel([answer(f"a{number}")])
        RUNS["run_sync"](desk(model), f"q{number}", session=session, run_config=UNTRACED)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(converse, range(8)))
    items = asyncio.run(session.get_items())
    assert sorted(item["content"] for item in items if item["role"] == "user") == [f"q{n}" for n in range(8)]
    asyncio.run(assert_consistent(session))
    session.close()
