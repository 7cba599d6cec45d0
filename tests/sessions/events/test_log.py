"""The event log on each database: numbers, round trips, pages, deletion, bad input."""

import asyncio
import gc
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from histories import histories, odd_items
from recollect import (
    InvalidItemError,
    MissingTablesError,
    NotADatabaseError,
    SchemaMismatchError,
    SQLiteSession,
    StorageError,
)
from recollect.sessions.events import ConversationEvent, EventLog, event_of
from recollect.testing.contract import HOSTILE_IDS, ODD_ITEMS, in_event_loop, message

from ..postgres.database import by
from .databases import Somewhere

Item = dict[str, Any]
# Not a fixture of hypothesis: each example has a conversation of its own.
few = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def numbers(events: list[ConversationEvent]) -> list[int]:
    return [event.sequence_number for event in events]


def words(events: list[ConversationEvent]) -> list[str | None]:
    return [event.text for event in events]


@in_event_loop
async def test_numbers_start_at_0_and_go_on_in_each_conversation(somewhere: Somewhere) -> None:
    async with somewhere.open(EventLog) as log:
        assert numbers(await log.append("a", [message("1"), message("2")])) == [0, 1]
        assert numbers(await log.append("b", [message("other")])) == [0]
        assert numbers(await log.append("a", [message("3")])) == [2]
        assert await log.append("a", []) == []
        assert words(await log.read("a")) == ["1", "2", "3"]
        assert (await log.count("a"), await log.count("b"), await log.count("c")) == (3, 1, 0)


@in_event_loop
async def test_an_event_comes_back_as_it_was_returned(somewhere: Somewhere) -> None:
    then = datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=8)))
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}
    output = {"type": "function_call_output", "call_id": "c1", "output": "done"}
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}
    async with somewhere.open(EventLog) as log:
        added = await log.append(
            "a",
            [thought, call, output],
            response_id="resp_1",
            agent="Desk",
            model="m",
            created_at=then,
            positions=[4, 5, 9],
        )
        found = await log.read("a")
        assert found == added
        called = event_of(
            call,
            conversation_id="a",
            sequence_number=1,
            response_id="resp_1",
            agent="Desk",
            model="m",
            created_at=then.astimezone(UTC),
            ingested_at=found[1].ingested_at,
            position=5,
        )
        assert found[1] == called
        assert (found[2].tool_name, found[2].call_output) == ("f", "done")
        assert found[0].created_at.isoformat() == "2024-02-29T04:00:00+00:00"


@in_event_loop
async def test_an_output_finds_the_name_of_its_tool_in_an_earlier_batch(somewhere: Somewhere) -> None:
    async with somewhere.open(EventLog) as log:
        await log.append("a", [{"type": "function_call", "call_id": "c1", "name": "f", "arguments": ""}])
        await log.append("a", [message("wait")])
        output = {"type": "function_call_output", "call_id": "c1", "output": "done"}
        (late,) = await log.append("a", [output])
        assert late.tool_name == "f"
        (unknown,) = await log.append("b", [output])
        assert unknown.tool_name is None


def test_odd_items_survive(somewhere: Somewhere) -> None:
    @few
    @given(st.lists(odd_items() | st.sampled_from(ODD_ITEMS), max_size=6) | histories())
    def check(items: list[Item]) -> None:
        runner.run(added_and_read(items))

    async def added_and_read(items: list[Item]) -> None:
        await log.delete("odd")
        added = await log.append("odd", items)
        assert await log.read("odd") == added
        assert numbers(added) == list(range(len(items)))

    log = somewhere.open(EventLog)
    with asyncio.Runner() as runner:
        check()
        runner.run(log.aclose())


@in_event_loop
async def test_large_items_and_many_of_them(somewhere: Somewhere) -> None:
    large = "北京 😀 \0" * 300_000
    picture = {"type": "input_image", "image_url": "data:" + "A" * 3_000_000}
    async with somewhere.open(EventLog) as log:
        (added,) = await log.append("a", [{"role": "user", "content": [{"text": large}, picture]}])
        assert await log.read("a") == [added]
        assert (added.text, added.attachments) == (large, (picture,))
        many = await log.append("many", [message(number) for number in range(2_345)])
        assert await log.read("many", limit=None) == many


@in_event_loop
async def test_pages(somewhere: Somewhere) -> None:
    async with somewhere.open(EventLog) as log:
        await log.append("a", [message(number) for number in range(120)])
        assert len(await log.read("a")) == 100
        found: list[ConversationEvent] = []
        while page := await log.read("a", after=found[-1].sequence_number if found else None, limit=50):
            found += page
        assert numbers(found) == list(range(120))
        assert await log.read("a", limit=0) == []
        assert numbers(await log.read("a", after=-1, limit=2)) == [0, 1]
        assert await log.read("a", after=2**63 - 1) == []


@in_event_loop
async def test_deleting_a_conversation_touches_no_other(somewhere: Somewhere) -> None:
    async with somewhere.open(EventLog) as log:
        for name in HOSTILE_IDS:
            await log.append(name, [message(name), message("again")])
        for place, name in enumerate(HOSTILE_IDS):
            assert words(await log.read(name)) == [name, "again"]
            assert (await log.read(name))[0].conversation_id == name
            assert await log.delete(name) == 2
            assert await log.delete(name) == 0
            left = [await log.count(other) for other in HOSTILE_IDS]
            assert left == [0] * (place + 1) + [2] * (len(HOSTILE_IDS) - place - 1)
        assert numbers(await log.append("a", [message("anew")])) == [0]


@in_event_loop
async def test_a_batch_with_a_bad_item_adds_nothing(somewhere: Somewhere) -> None:
    bad: list[Any]
    async with somewhere.open(EventLog) as log:
        await log.append("a", [message("good")])
        for bad in ([message("x"), "text"], [message("x"), {"n": float("nan")}], [{1: 2}], "text", None):
            with pytest.raises(InvalidItemError):
                await log.append("a", bad)
        assert words(await log.read("a")) == ["good"]


@in_event_loop
async def test_bad_input_is_a_clear_error_that_quotes_nothing() -> None:
    async with EventLog(":memory:") as log:
        calls: list[tuple[type[Exception], str, Any]] = [
            (ValueError, "conversation_id must not be empty", log.append("", [])),
            (TypeError, "conversation_id must be a string", log.append(None, [])),  # type: ignore[arg-type]
            (ValueError, "conversation_id must be valid unicode", log.read("a\0secret")),
            (TypeError, "agent must be a string", log.append("a", [], agent=7)),  # type: ignore[arg-type]
            (ValueError, "model must be valid unicode", log.append("a", [], model="secret\ud800")),
            (ValueError, "a position for each of 1", log.append("a", [message("x")], positions=[1, 2])),
            (TypeError, "a position must be", log.append("a", [message("x")], positions=["1"])),  # type: ignore[list-item]
            (ValueError, "a position must be from 0", log.append("a", [message("x")], positions=[2**63])),
            (ValueError, "time zone", log.append("a", [], created_at=datetime(2020, 1, 1))),  # noqa: DTZ001
            (TypeError, "created_at must be a datetime", log.append("a", [], created_at="now")),  # type: ignore[arg-type]
            (ValueError, "after must be from 0", log.read("a", after=-2)),
            (TypeError, "after must be", log.read("a", after="1")),  # type: ignore[arg-type]
            (ValueError, "limit must not be negative", log.read("a", limit=-1)),
        ]
        for kind, said, call in calls:
            with pytest.raises(kind, match=said) as raised:
                await call
            assert "secret" not in str(raised.value)


# --- opening and closing ---


@in_event_loop
async def test_a_closed_log_says_so(somewhere: Somewhere) -> None:
    log = somewhere.open(EventLog)
    await log.append("a", [message("x")])
    await log.aclose()
    await log.aclose()
    log.close()
    with pytest.raises(RuntimeError, match="the EventLog is closed"):
        await log.read("a")


@in_event_loop
async def test_what_was_added_is_there_after_opening_again(shared: Somewhere) -> None:
    async with shared.open(EventLog) as log:
        await log.append("a", [message("kept")])
    async with shared.open(EventLog) as log:
        assert words(await log.read("a")) == ["kept"]


def test_a_log_works_from_several_event_loops(somewhere: Somewhere) -> None:
    log = somewhere.open(EventLog)
    for number in range(3):
        asyncio.run(log.append("a", [message(number)]))
    assert numbers(asyncio.run(log.read("a"))) == [0, 1, 2]
    asyncio.run(log.aclose())


@in_event_loop
async def test_a_log_lives_in_the_file_of_its_sessions(tmp_path: Path) -> None:
    path = tmp_path / "all.db"
    async with SQLiteSession("s", path) as session, EventLog(f"sqlite:///{path}") as log:
        await session.add_items([message("hi")])
        assert words(await log.project(session)) == ["hi"]
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT conversation_id, sequence_number, text FROM conversation_events")
        assert rows.fetchall() == [("s", 0, "hi")]


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("", ValueError, "path of a file"),
        ("sqlite:///", ValueError, "path of a file"),
        ("memory://", ValueError, "SQLite and PostgreSQL are supported here, not memory://"),
        ("redis://host", ValueError, "SQLite and PostgreSQL are supported here, not redis://"),
        ("nonsense://user:secret@host", ValueError, "not a database URL"),
        (7, TypeError, "a path or a URL, not int"),
    ],
)
def test_a_place_that_cannot_be(url: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as raised:
        EventLog(url)
    assert "secret" not in str(raised.value)


@in_event_loop
async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is not a database, however long it is" * 100)
    async with EventLog(tmp_path / "text.db") as log:
        with pytest.raises(NotADatabaseError):
            await log.count("a")


@in_event_loop
async def test_tables_of_another_shape(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE conversation_events (id INTEGER)")
    async with EventLog(tmp_path / "other.db") as log:
        with pytest.raises(SchemaMismatchError, match="conversation_events"):
            await log.count("a")


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@in_event_loop
async def test_a_server_without_the_tables(empty_postgres: str, driver: str) -> None:
    async with EventLog(by(driver, empty_postgres)) as log:
        with pytest.raises(MissingTablesError, match="recollect migrate"):
            await log.append("a", [message("x")])


@in_event_loop
async def test_an_error_of_the_server_does_not_quote_contents(empty_postgres: str) -> None:
    """An id too long for an index is the server's to refuse."""
    chance = random.Random(1)
    huge = "".join(chr(chance.randint(0x4E00, 0x9FFF)) for _ in range(20_000))
    async with EventLog(empty_postgres, create_tables=True) as log:
        with pytest.raises(StorageError) as raised:
            await log.append(huge, [message("secret")])
        assert "secret" not in str(raised.value)
        assert len(str(raised.value)) < 200
        assert numbers(await log.append("a", [message("next")])) == [0], "the log goes on"


def test_a_log_that_nobody_closed_leaves_nothing_behind(somewhere: Somewhere) -> None:
    """What the garbage collector finds is closed, and a warning about it would be an error here."""

    async def use() -> int:
        log = somewhere.open(EventLog)
        return len(await log.append("a", [message("x")]))

    assert asyncio.run(use()) == 1
    gc.collect()


@pytest.mark.parametrize("name", ["EventLog", "ConversationSummaryStore"])
def test_a_server_needs_an_extra_and_a_file_does_not(name: str) -> None:
    script = (
        "import sys; sys.modules['sqlalchemy'] = None\n"  # what Python takes for: not to be had
        "import asyncio\n"
        "from recollect import MissingExtraError\n"
        "from recollect.sessions.events import EventLog\n"
        "from recollect.strategies.summaries import ConversationSummaryStore\n"
        f"print(asyncio.run({name}(':memory:').delete('nothing')))\n"
        f"try: {name}('postgresql://127.0.0.1/x')\n"
        "except MissingExtraError as error: print(error)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("0\n")
    assert "pip install 'recollect-memory[postgres]'" in ended.stdout
