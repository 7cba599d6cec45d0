"""A conversation on our session is, item by item, what it is on a session of the SDK."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import RunConfig, Runner
from agents.extensions.memory import EncryptedSession
from agents.run_internal.session_persistence import rewind_session_items
from agents.testing import ModelCall, ModelStep, ScriptedModel

from recollect import InMemorySession, RetryingSession
from recollect.testing.contract import in_event_loop, message

from .scenarios import (
    RUNS,
    SCENARIOS,
    Item,
    Scenario,
    answer,
    both_sessions,
    call,
    conversation_locked,
    desk,
    in_short,
    play,
)

UNTRACED = RunConfig(tracing_disabled=True)


@pytest.mark.parametrize("run_kind", RUNS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_conversation_is_what_it_is_on_the_sdks_session(
    tmp_path: Path, scenario: str, run_kind: str
) -> None:
    story, run_turn = SCENARIOS[scenario], RUNS[run_kind]
    with both_sessions(tmp_path) as (ours, theirs):
        found, expected = play(ours, story, run_turn), play(theirs, story, run_turn)
    assert found == expected
    assert in_short(found.stored[-1]) == story.stored
    assert found.ends == [*story.ends, *[""] * (len(story.turns) - len(story.ends))]
    with closing(agents.SQLiteSession("s", ours.db_path)) as reader:
        assert asyncio.run(reader.get_items()) == found.stored[-1], "the SDK reads what we wrote"


OTHERS: dict[str, Callable[[Any], Any]] = {
    "in memory": lambda _: InMemorySession("s"),
    "retrying": RetryingSession,
    "encrypted by the SDK": lambda ours: EncryptedSession("s", ours, encryption_key="secret"),
}


@pytest.mark.parametrize("run_kind", ["run", "run_streamed"])
@pytest.mark.parametrize("kind", OTHERS)
def test_a_conversation_on_our_other_sessions(tmp_path: Path, kind: str, run_kind: str) -> None:
    story, run_turn = SCENARIOS["a handoff and tools"], RUNS[run_kind]
    with both_sessions(tmp_path) as (ours, theirs):
        other = OTHERS[kind](ours)
        assert isinstance(other, agents.Session)
        assert isinstance(ours, agents.Session)
        assert play(other, story, run_turn) == play(theirs, story, run_turn)


@pytest.mark.parametrize("length", [10, 100, 1000])
def test_a_long_history_is_shown_as_the_sdks_session_shows_it(tmp_path: Path, length: int) -> None:
    history = [message(f"{n} 😀") for n in range(length - 2)]
    story = Scenario(["hi", "bye"], lambda: [answer("hello"), answer("bye")], "")
    with both_sessions(tmp_path) as sessions:
        for session in sessions:
            asyncio.run(session.add_items(history))
        found, expected = (play(session, story, RUNS["run"]) for session in sessions)
    assert found == expected
    assert found.shown[-1][:-1] == found.stored[0]
    assert len(found.shown[-1]) == length + 1


@pytest.mark.parametrize("run_kind", ["run", "run_streamed"])
def test_a_retry_after_a_locked_conversation(tmp_path: Path, run_kind: str) -> None:
    """The Runner waits a second before it, so both conversations are played at once."""
    story = Scenario(["1+2?", "thanks"], _locked_twice, "UCOAUA")
    with both_sessions(tmp_path) as sessions, ThreadPoolExecutor() as pool:
        found, expected = pool.map(lambda session: play(session, story, RUNS[run_kind]), sessions)
    assert found == expected
    assert in_short(found.stored[-1]) == story.stored
    assert found.ends == ["", ""]


def _locked_twice() -> list[Any]:
    return [[call("add", a=1, b=2)], conversation_locked(), answer("3"), answer("welcome")]


# --- rewinding: the Runner takes back what it stored when it sends a request again. It does so only where
# the server keeps the conversation as well, and there it refuses sessions, so we ask its function itself.

HISTORY = [message("hi"), {"role": "assistant", "content": "hello", "id": "msg_1", "type": "message"}]
TAILS: dict[str, list[Item]] = {
    "a message": [message("1+2? 😀\u2028")],
    "several": [message("one"), {"role": "user", "content": [{"type": "input_text", "text": "two"}]}],
    "a call": [
        message("1+2?"),
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "add", "arguments": '{"a": 1.50}'},
        {"type": "function_call_output", "call_id": "c", "output": "é"},
    ],
    "nothing": [],
}


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("tail", TAILS)
@in_event_loop
async def test_the_runners_rewind_takes_back_the_newest_items(
    tmp_path: Path, tail: str, limit: int | None
) -> None:
    settings = agents.SessionSettings(limit=limit)
    with both_sessions(tmp_path, session_settings=settings) as sessions:
        for session in sessions:
            await session.add_items([*HISTORY, *TAILS[tail]])
            await rewind_session_items(session, TAILS[tail])  # type: ignore[arg-type]
            assert await session.get_items(100) == HISTORY


@in_event_loop
async def test_the_runners_rewind_leaves_alone_what_others_appended(tmp_path: Path) -> None:
    with both_sessions(tmp_path) as sessions:
        for session in sessions:
            await session.add_items([*HISTORY, message("mine"), message("another's")])
            await rewind_session_items(session, [message("mine")])  # type: ignore[list-item]
            assert await session.get_items() == [*HISTORY, message("mine"), message("another's")]


@pytest.mark.parametrize("run_kind", RUNS)
def test_the_runner_refuses_a_session_beside_a_conversation_of_the_server(
    tmp_path: Path, run_kind: str
) -> None:
    story = Scenario(["hi"], list, "", options={"conversation_id": "conv_1"})
    with both_sessions(tmp_path) as (ours, theirs):
        found, expected = play(ours, story, RUNS[run_kind]), play(theirs, story, RUNS[run_kind])
    assert found == expected
    assert (found.ends, found.stored) == (["UserError"], [[]])


# --- a streamed run that is stopped ---


@pytest.mark.parametrize(("mode", "stored"), [("immediate", "UCOUA"), ("after_turn", "UCOAUA")])
@in_event_loop
async def test_a_streamed_run_that_is_cancelled(tmp_path: Path, mode: Any, stored: str) -> None:
    """It is cancelled while the model makes its second answer."""
    with both_sessions(tmp_path) as (ours, theirs):
        found, expected = await _cancelled_run(ours, mode), await _cancelled_run(theirs, mode)
    assert found == expected
    assert in_short(found) == stored


async def _cancelled_run(session: Any, mode: Any) -> list[Item]:
    asked = asyncio.Event()

    async def slow_answer(_call: ModelCall) -> list[Any]:
        asked.set()
        await asyncio.sleep(0.1)
        return answer("3")

    model = ScriptedModel([[call("add", a=1, b=2)], ModelStep.respond(slow_answer), answer("bye")])
    result = Runner.run_streamed(desk(model), "1+2?", session=session, run_config=UNTRACED)

    async def cancel() -> None:
        await asked.wait()
        result.cancel(mode=mode)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cancel())
        async for _ in result.stream_events():
            pass
    await Runner.run(desk(model), "bye", session=session, run_config=UNTRACED)
    model.assert_complete()
    found: list[Item] = await session.get_items()
    return found
