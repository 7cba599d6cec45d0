"""A time in the future is rejected, corrected on import, and does not win if it is stored already."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect.memory.entry import Entry
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.consolidation import consolidate
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.memory.pipeline.stages import Candidate, Decision
from recollect.memory.store import MemoryStore
from recollect.sql.scripts import Script, Statement

from ..databases import Place

pytestmark = pytest.mark.anyio

FUTURE = "2999-01-01T00:00:00Z"


def _said(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text, **more}]


async def _learn(store: MemoryStore) -> None:
    runner = Runner(store._database, OfflineExtractor(), RunOptions(attempts=1))
    while (task := await runner.claim("learning")) is not None:
        await runner.execute(task)


async def test_a_time_ahead_of_the_clock_is_refused(file_place: Place) -> None:
    async with file_place.open() as store:
        with pytest.raises(ValueError, match="created_at of message 0 must not be more than 5 minutes ahead"):
            await store.record_conversation("a", "u", _said("I live in Rome.", created_at=FUTURE))
        with pytest.raises(ValueError, match="created_at must not be more than 5 minutes ahead"):
            await store.record_conversation("a", "u", _said("I live in Rome."), created_at=FUTURE)
        conversation = await store.record_conversation("a", "u", _said("Hello there."))
        with pytest.raises(ValueError, match="ahead of the clock"):
            await store.append_messages(
                conversation.conversation_id, _said("I live in Rome.", created_at=FUTURE)
            )


async def test_a_clock_that_is_a_little_fast_is_accepted(file_place: Place) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=3)
    async with file_place.open() as store:
        conversation = await store.record_conversation("a", "u", _said("I live in Rome.", created_at=soon))
        assert conversation.messages[0].created_at == soon


async def test_an_import_corrects_times_ahead_of_the_clock_and_counts_them(shared_place: Place) -> None:
    exported = {
        "user_id": "u",
        "conversations": [
            {
                "agent_id": "a",
                "user_id": "u",
                "conversation_id": "c",
                "created_at": FUTURE,
                "messages": _said("I live in Rome.", created_at=FUTURE),
                "waiting_from": 0,
            }
        ],
    }
    async with shared_place.open() as store:
        counts = await store.import_user(exported)
        assert counts["future_times_corrected"] > 0
        conversation = await store.get_conversation("c")
        assert conversation is not None
        now = datetime.now(UTC)
        assert conversation.messages[0].created_at <= now
        assert conversation.created_at <= now


def test_a_stored_entry_from_the_future_does_not_win_over_what_is_said_later() -> None:
    learned = datetime(2026, 1, 1, tzinfo=UTC)
    rome = Entry(
        "rome", "m", "profile", "The user lives in Rome.", learned, said_at=datetime(2999, 1, 1, tzinfo=UTC)
    )
    oslo = Candidate("profile", "The user lives in Oslo.", ("m1",), slot="home")
    said_at = {"m1": learned + timedelta(days=1)}
    changes = consolidate("c", [oslo], [Decision(0, "supersede", ("rome",))], [rome], said_at)
    (added,) = changes.added
    assert (added.supersedes, added.superseded_by) == (("rome",), None)


async def test_what_is_said_now_wins_over_an_entry_that_was_stored_with_a_future_time(
    shared_place: Place,
) -> None:
    async with shared_place.open() as store:
        await store.record_conversation("a", "u", _said("I live in Rome."))
        await _learn(store)
        await store._database.write(_move_to_the_future)
        await store.record_conversation("a", "u", _said("I live in Oslo."))
        await _learn(store)
        assert [entry.text for entry in await store.list_entries("a", "u")] == ["The user lives in Oslo."]


def _move_to_the_future() -> Script[None]:
    yield Statement("UPDATE memory_contents SET said_at = '2999-01-01T00:00:00.000000Z'")
