"""Summaries of conversations on each database: versions, expiry, pages, deletion, bad input."""

import asyncio
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from recollect import InMemorySession, MissingTablesError, SQLiteSession
from recollect.strategies.session import StrategySession
from recollect.strategies.summaries import ConversationSummary, ConversationSummaryStore
from recollect.strategies.values import Summarize
from recollect.testing.contract import HOSTILE_IDS, in_event_loop

from ...sessions.events.databases import Somewhere
from ..sessions import turn

WORKER = Path(__file__).with_name("summaries_worker.py")
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def texts(summaries: list[ConversationSummary]) -> list[str]:
    return [summary.text for summary in summaries]


@in_event_loop
async def test_a_summary_comes_back_as_it_was_added(somewhere: Somewhere) -> None:
    async with somewhere.open(ConversationSummaryStore) as store:
        added = await store.add(
            "c", "they talked", agent="Desk", model="m", token_length=7, covered_position=2**40, ttl=60
        )
        assert await store.newest("c") == added
        assert await store.list_summaries("c") == [added]
        assert UUID(added.id).version == 7
        assert (added.version, added.token_length, added.covered_position) == (1, 7, 2**40)
        assert added.expires_at == added.created_at + timedelta(seconds=60)
        assert added.created_at.utcoffset() == timedelta(0)
        assert (await store.add("c", "words " * 40)).token_length == 60, "estimated"


@pytest.mark.parametrize(
    "text", ["nul \0 inside", "half \ud83d", "\x01marked", "北京 😀\n\r\u2028", "x" * 3_000_000]
)
@in_event_loop
async def test_any_text_survives(somewhere: Somewhere, text: str) -> None:
    async with somewhere.open(ConversationSummaryStore) as store:
        await store.add("c", text)
        newest = await store.newest("c")
        assert newest is not None
        assert newest.text == text


@in_event_loop
async def test_versions_count_up_in_each_conversation(somewhere: Somewhere) -> None:
    async with somewhere.open(ConversationSummaryStore) as store:
        for name in HOSTILE_IDS:
            versions = [(await store.add(name, f"{number} of {name}")).version for number in range(3)]
            assert versions == [1, 2, 3]
        for place, name in enumerate(HOSTILE_IDS):
            newest = await store.newest(name)
            assert newest is not None
            assert newest.text == f"2 of {name}"
            assert await store.delete(name) == 3
            assert await store.delete(name) == 0
            left = [len(await store.list_summaries(other)) for other in HOSTILE_IDS]
            assert left == [0] * (place + 1) + [3] * (len(HOSTILE_IDS) - place - 1)


@in_event_loop
async def test_the_newest_is_the_one_of_the_highest_version_that_has_not_expired(
    somewhere: Somewhere,
) -> None:
    async with somewhere.open(ConversationSummaryStore) as store:
        assert await store.newest("c") is None
        await store.add("c", "first", agent="Desk")
        await store.add("c", "second", agent="Billing", expires_at=datetime.now(UTC) + timedelta(days=1))
        await store.add("c", "expired", expires_at=PAST)
        newest, of_desk = await store.newest("c"), await store.newest("c", agent="Desk")
        assert newest is not None
        assert of_desk is not None
        assert (newest.text, of_desk.text) == ("second", "first")
        assert await store.newest("c", agent="Nobody") is None
        assert await store.newest("d") is None


@in_event_loop
async def test_what_has_expired_is_purged_and_no_version_is_given_again(somewhere: Somewhere) -> None:
    async with somewhere.open(ConversationSummaryStore) as store:
        await store.add("c", "kept")
        for number in range(1_200):
            if number % 100 == 0:
                await store.add(f"of {number}", "stays", ttl=1000)
            await store.add("c", "expired", expires_at=PAST)
        assert await store.purge_expired() == 1_200
        assert await store.purge_expired() == 0
        assert texts(await store.list_summaries("c")) == ["kept"]
        assert await store.newest("of 100") is not None
        assert (await store.add("c", "next")).version == 1_202


@in_event_loop
async def test_pages(somewhere: Somewhere) -> None:
    async with somewhere.open(ConversationSummaryStore) as store:
        for number in range(1, 8):
            await store.add("c", f"number {number}", expires_at=PAST if number == 3 else None)
        found: list[ConversationSummary] = []
        before = None
        while page := await store.list_summaries("c", before=before, limit=3):
            found += page
            before = page[-1].version
        assert [summary.version for summary in found] == [7, 6, 5, 4, 3, 2, 1]
        assert await store.list_summaries("c", limit=0) == []


@in_event_loop
async def test_many_at_once_get_a_version_each(shared: Somewhere) -> None:
    stores = [shared.open(ConversationSummaryStore) for _ in range(3)]
    added = await asyncio.gather(*(stores[n % 3].add("c", f"text {n}") for n in range(60)))
    assert sorted(summary.version for summary in added) == list(range(1, 61))
    newest = await stores[0].newest("c")
    assert newest in added
    for store in stores:
        await store.aclose()


# --- processes ---


def start(where: Somewhere, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), str(count), *where.arguments()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.proof
def test_processes_add_to_one_conversation(shared: Somewhere) -> None:
    """They also race to create the tables."""
    workers = [start(shared, 20) for _ in range(3)]
    versions: list[int] = []
    for worker in workers:
        output, errors = worker.communicate(timeout=100)
        assert (worker.returncode, errors) == (0, "")
        versions += map(int, output.split())
    assert sorted(versions) == list(range(1, 61))


def test_what_was_acknowledged_survives_kill_9(shared: Somewhere) -> None:
    worker = start(shared, 100_000)
    assert worker.stdout is not None
    for _ in range(5):
        assert worker.stdout.readline()
    time.sleep(0.05)
    worker.send_signal(signal.SIGKILL)
    acknowledged = 5 + worker.stdout.read().count(
        "\n"
    )  # including buffered output, which `communicate` drops
    assert worker.communicate()[1] == ""

    async def stored() -> list[ConversationSummary]:
        async with shared.open(ConversationSummaryStore) as store:
            return await store.list_summaries("c", limit=200_000)

    versions = [summary.version for summary in asyncio.run(stored())]
    assert versions == list(range(len(versions), 0, -1))
    assert acknowledged <= len(versions) <= acknowledged + 1


# --- with a strategy ---


@in_event_loop
async def test_the_summaries_of_a_session_are_kept(tmp_path: Path) -> None:
    async def summarize(request: Any) -> str:
        return f"{request.previous or ''}{len(request.items)} items. "

    async with ConversationSummaryStore(tmp_path / "s.db") as store:
        inner = SQLiteSession("s", tmp_path / "s.db")
        session = StrategySession(inner, Summarize(4, 2), summarizer=summarize, on_summary=store.on_summary)
        async with session:
            for number in range(1, 10):
                await session.add_items(turn(number))
                shown = await session.get_items()
        newest = await store.newest("s")
        assert newest is not None
        assert newest.version >= 2
        assert any(newest.text in str(item.get("content")) for item in shown), "it is what the model sees"
        assert newest.covered_position is not None
        assert newest.covered_position % 4 == 0, "the end of a turn"


@in_event_loop
async def test_a_compaction_is_no_summary() -> None:
    from recollect.strategies.values import Compact

    async with ConversationSummaryStore(":memory:") as store:
        session = StrategySession(InMemorySession("s"), Compact(2, 1), on_compaction=store.on_summary)
        for number in range(1, 6):
            await session.add_items(turn(number))
            await session.get_items()
        assert await store.list_summaries("s") == []


# --- bad input ---


@in_event_loop
async def test_bad_input_is_a_clear_error_that_quotes_nothing() -> None:
    naive = datetime(2030, 1, 1)  # noqa: DTZ001
    bad: list[tuple[type[Exception], str, tuple[Any, ...], dict[str, Any]]] = [
        (ValueError, "conversation_id must not be empty", ("", "secret"), {}),
        (TypeError, "conversation_id must be a string", (7, "secret"), {}),
        (ValueError, "conversation_id must be valid", ("secret\0", "secret"), {}),
        (ValueError, "text must not be empty", ("c", " \n"), {}),
        (TypeError, "text must be a string", ("c", None), {}),
        (TypeError, "agent must be a string", ("c", "secret"), {"agent": 1}),
        (ValueError, "model must be valid", ("c", "secret"), {"model": "\ud800secret"}),
        (ValueError, "token_length must be from 0", ("c", "secret"), {"token_length": -1}),
        (TypeError, "token_length must be a whole", ("c", "secret"), {"token_length": 1.5}),
        (TypeError, "covered_position must be a whole", ("c", "secret"), {"covered_position": True}),
        (ValueError, "covered_position must be from 0", ("c", "secret"), {"covered_position": 10**30}),
        (ValueError, "ttl must be more", ("c", "secret"), {"ttl": 0}),
        (ValueError, "ttl must be more", ("c", "secret"), {"ttl": float("nan")}),
        (ValueError, "ttl must end", ("c", "secret"), {"ttl": 1e18}),
        (TypeError, "ttl must be a number", ("c", "secret"), {"ttl": "1"}),
        (ValueError, "not both", ("c", "secret"), {"ttl": 1, "expires_at": PAST}),
        (ValueError, "time zone", ("c", "secret"), {"expires_at": naive}),
        (TypeError, "expires_at must be a datetime", ("c", "secret"), {"expires_at": 5}),
    ]
    async with ConversationSummaryStore(":memory:") as store:
        for kind, said, arguments, options in bad:
            with pytest.raises(kind, match=said) as raised:
                await store.add(*arguments, **options)
            assert "secret" not in str(raised.value)
        with pytest.raises(ValueError, match="limit"):
            await store.list_summaries("c", limit=-1)
        with pytest.raises(ValueError, match="before"):
            await store.list_summaries("c", before=-1)
        with pytest.raises(ValueError, match="agent must not be empty"):
            await store.newest("c", agent="")
        assert await store.list_summaries("c") == []


@in_event_loop
async def test_a_closed_store_says_so() -> None:
    store = ConversationSummaryStore(":memory:")
    store.close()
    with pytest.raises(RuntimeError, match="the ConversationSummaryStore is closed"):
        await store.newest("c")


@in_event_loop
async def test_a_server_without_the_tables(empty_postgres: str) -> None:
    async with ConversationSummaryStore(empty_postgres) as store:
        with pytest.raises(MissingTablesError, match="recollect migrate"):
            await store.add("c", "text")


def test_a_summary_does_not_show_its_text_where_it_is_printed() -> None:
    summary = ConversationSummary("id", "c", None, "secret", None, 1, None, 1, PAST, None)
    assert "secret" not in repr(summary)
