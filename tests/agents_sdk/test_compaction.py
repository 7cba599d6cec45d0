"""Our session inside the SDK's compaction session, with a real client and a server on the loopback."""

from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from recollect import SessionMetadata, SQLiteSession
from recollect.testing.contract import in_event_loop, message

from .compactor import HISTORY, Compactor, compacting, stored_by_runs
from .scenarios import both_sessions, in_short


@in_event_loop
async def test_compaction_replaces_the_history(tmp_path: Path, server: Compactor) -> None:
    found = []
    with both_sessions(tmp_path) as sessions:
        for underlying in sessions:
            async with compacting(server, underlying) as session:
                await session.add_items(HISTORY)  # type: ignore[arg-type]
                await session.run_compaction({"force": True})
                found.append(await underlying.get_items())
                await session.add_items([message("since")])  # type: ignore[list-item]
                assert (await underlying.get_items())[:-1] == found[-1]
    assert [request["input"] for request in server.requests] == [HISTORY, HISTORY]
    assert found[0] == found[1]
    assert in_short(found[0]) == "UUUUUUK"
    assert found[0][-1]["encrypted_content"] == "gAAAAA of 12"


@in_event_loop
async def test_compaction_with_a_default_limit_replaces_the_whole_history(
    tmp_path: Path, server: Compactor
) -> None:
    found = []
    with both_sessions(tmp_path, session_settings={"limit": 3}) as sessions:
        for underlying in sessions:
            await underlying.add_items(HISTORY)
            async with compacting(server, underlying) as session:
                await session.run_compaction({"force": True})
            found.append(await underlying.get_items(100))
    assert server.requests[0] == server.requests[1]
    assert found[0] == found[1]
    assert in_short(found[0]) == "UK"


@pytest.mark.parametrize("status", [400, 500])
@in_event_loop
async def test_a_compaction_that_fails_leaves_the_history(
    tmp_path: Path, server: Compactor, status: int
) -> None:
    server.status = status
    with both_sessions(tmp_path) as (ours, _):
        await ours.add_items(HISTORY)
        async with compacting(server, ours) as session:
            with pytest.raises(openai.APIStatusError):
                await session.run_compaction({"force": True})
            assert await ours.get_items() == HISTORY
            server.status = 200
            await session.run_compaction({"force": True})
            assert in_short(await ours.get_items()) == "UUUUUUK"


@pytest.mark.parametrize("mode", ["input", "previous_response_id"])
@pytest.mark.parametrize("streamed", [False, True])
@in_event_loop
async def test_runs_compact_as_they_do_on_the_sdks_session(
    tmp_path: Path, server: Compactor, streamed: bool, mode: Any
) -> None:
    with both_sessions(tmp_path) as (ours, theirs):
        found = await stored_by_runs(server, ours, streamed=streamed, compaction_mode=mode)
        requests, server.requests = server.requests, []
        expected = await stored_by_runs(server, theirs, streamed=streamed, compaction_mode=mode)
    assert found == expected
    assert requests == server.requests
    assert len(requests) == 1
    compacted = "UUK" if mode == "input" else "K"
    assert [in_short(items) for items in found] == ["UCOA", compacted, f"{compacted}UA", f"{compacted}UAUA"]


@in_event_loop
async def test_runs_compact_what_the_model_saw_of_a_limited_history(
    tmp_path: Path, server: Compactor
) -> None:
    with both_sessions(tmp_path, session_settings={"limit": 3}) as sessions:
        found = [await stored_by_runs(server, s, threshold=2, compaction_mode="input") for s in sessions]
    assert found[0] == found[1]
    assert [in_short(items) for items in found[1]] == ["UK", "UUK", "UUKUA", "UUKUUK"]


@in_event_loop
async def test_compaction_keeps_whose_session_it_is(tmp_path: Path, server: Compactor) -> None:
    owner = SessionMetadata(user_id="anna", title="Weather")
    with closing(SQLiteSession("s", tmp_path / "ours.db")) as ours:
        await ours.add_items(HISTORY)
        await ours.set_metadata(owner)
        async with compacting(server, ours) as session:
            await session.run_compaction({"force": True})
        assert in_short(await ours.get_items()) == "UUUUUUK"
        assert await ours.get_metadata() == owner
