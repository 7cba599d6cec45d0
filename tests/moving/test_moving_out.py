"""Out and in again, and copies between databases: the same rows, on both databases."""

import asyncio
import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    AdvancedSQLiteSession,
    ConversationSummaryStore,
    EventLog,
    SessionMetadata,
    SQLiteSession,
)
from recollect.cli import main
from recollect.cli.copied_tables import create_tables, our_tables
from recollect.errors import ConflictError, SchemaMismatchError
from recollect.integrations.langgraph import Store
from recollect.moving.copying import copy_database
from recollect.moving.copying.ends import open_end
from recollect.moving.copying.values import compared
from recollect.moving.importer import Importer
from recollect.moving.markdown import describe_user
from recollect.moving.records import ImportReport, Record

from .kit import import_from, rows_in, store_at

pytestmark = pytest.mark.anyio

DERIVED = {
    "memories": {"entries_stamp", "turns_stamp"},
    "conversations": {"learn_at"},
    "message_records": {"stamp", "head", "terms", "counts", "vectors", "vector_model"},
    "message_structure": {"id"},
    "turn_usage": {"id"},
    "conversation_events": set[str](),
    "recollect_conversation_events_heads": {"stamp", "tail"},
}
"""Columns that are made anew, and are not part of an export."""
LEFT_OUT = {
    "memory_queue",
    "memory_keys",
    "memory_embedders",
    "recollect_agent_messages_batches",
    "recollect_agent_sessions_leases",
    "recollect_agent_sessions_notes",
    "recollect_agent_sessions_runs",
}
"""Tables without history: queues, leases, secrets, caches, and what makes retries safe."""


async def fill(path: str) -> None:
    """A database with something of everything that is exported."""
    async with store_at(path, workers=1) as store:
        for text in ("I live in Porto.", "I moved to Lisbon.", "My cat is called Mia."):
            said = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
            await store.record_conversation("assistant", "ada", said, metadata={"from": "test"}, tags=["a"])
        long = [{"role": "user", "content": f"number {number}"} for number in range(1205)]
        await store.record_conversation("helper", "bob", long, conversation_id="long")
        await store.drain(timeout=90)
        (entry, *_) = await store.list_entries("assistant", "ada")
        await store.edit_entry(entry.content_id, "Ada lives in Lisbon now")
    async with AdvancedSQLiteSession(session_id="advanced", db_path=path) as session:
        items: list[Any] = [{"role": "user", "content": f"item {number}"} for number in range(1100)]
        await session.add_items(items)
        await session.create_branch_from_turn(3, "other")
        await session.add_items([{"role": "user", "content": "on a branch"}])
        await session.set_metadata(SessionMetadata(user_id="ada", agent_id="assistant", title="T"))
    async with (
        SQLiteSession("of nobody", path) as plain,
        EventLog(path) as log,
        ConversationSummaryStore(path) as summaries,
    ):
        await plain.add_items([{"role": "user", "content": "plain"}])
        await log.append("advanced", [{"role": "user", "content": "logged"}])
        await summaries.add("advanced", "a summary", token_length=3)


async def rows_of(url: str) -> dict[str, list[Any]]:
    """All rows with history, without what is derived, in one order."""
    found = {}
    async with open_end(url, to_write=False) as end:
        for name, table in (await end.tables()).items():
            if name in LEFT_OUT:
                continue
            kept = [
                place for place, column in enumerate(table.columns) if column not in DERIVED.get(name, ())
            ]
            names = [table.columns[place] for place in kept]
            order = sorted(range(len(names)), key=names.__getitem__)
            rows = await end.page(table, None, 100_000)
            values = [[_plain(names[n], row[kept[n]]) for n in order] for row in rows]
            if values:
                found[name] = sorted(values, key=repr)
    return found


def _plain(name: str, value: Any) -> Any:
    """A value in a form that does not depend on the database: documents by their contents."""
    if isinstance(value, str) and value[:1] in ("{", "[") and name != "content":
        return json.dumps(json.loads(value), sort_keys=True)
    return value


async def test_an_export_of_everything_gives_the_same_rows(url: str, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    await fill(source)
    lines = tmp_path / "all.jsonl"
    await asyncio.to_thread(main, ["export", "--all", "--url", source, "--output", str(lines)])
    report = await import_from("jsonl", lines, url)
    assert [problem.reason for problem in report.problems] == []
    wanted, found = await rows_of(source), await rows_of(url)
    assert wanted.keys() == found.keys()
    for name in wanted:
        assert found[name] == wanted[name], name
    assert {
        "agent_messages",
        "conversation_summaries",
        "conversation_events",
        "message_structure",
    } <= wanted.keys()
    again = await import_from("jsonl", lines, url)
    assert (again.added.total(), again.lost) == (0, 0)


async def test_a_copy_has_the_same_rows_there_and_back(new_postgres: str, tmp_path: Path) -> None:
    source, back = str(tmp_path / "source.db"), str(tmp_path / "back.db")
    await fill(source)

    async def copy(one: str, other: str, *more: str) -> None:
        assert await asyncio.to_thread(main, ["copy", one, other, *more]) == 0

    await copy(source, new_postgres)
    await copy(new_postgres, back)
    async with open_end(source, to_write=False) as one, open_end(back, to_write=False) as other:
        tables = await one.tables()
        for name, table in tables.items():
            if await one.count(table):
                theirs = (await other.tables())[name]
                rows = [await each.page(t, None, 100_000) for each, t in ((one, table), (other, theirs))]
                by_name = [
                    sorted(
                        (
                            sorted((c, _plain(c, v)) for c, v in zip(t.columns, row, strict=True))
                            for row in some
                        ),
                        key=repr,
                    )
                    for t, some in zip((table, theirs), rows, strict=True)
                ]
                assert by_name[0] == by_name[1], name
    async with store_at(new_postgres) as store:  # ids go on after the copied ones
        await store.record_conversation("assistant", "ada", [{"role": "user", "content": "more"}])
    with pytest.raises(ConflictError, match="1 rows that the source lacks, in conversation_messages"):
        await copy_database(source, new_postgres, tables=["conversation_messages"])
    await copy(source, new_postgres, "--yes")  # the target becomes equal again
    ours = await our_tables(source)
    report = await copy_database(source, new_postgres, tables=ours)
    assert report.written == 0
    _execute(source, "UPDATE conversation_messages SET content = 'changed' WHERE conversation_id = 'long'")
    _execute(source, "DELETE FROM agent_messages WHERE session_id = 'of nobody'")
    report = await copy_database(source, new_postgres, tables=ours, remove_extra=True)
    changed = {
        table.name: (table.changed, table.removed)
        for table in report.tables
        if table.changed or table.removed
    }
    assert changed == {"conversation_messages": (1205, 0), "agent_messages": (0, 1)}


async def test_a_copy_removes_nothing_unasked_and_leaves_other_tables_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = str(tmp_path / "source.db"), str(tmp_path / "target.db")
    for path, user in ((source, "ada"), (target, "bob")):
        async with store_at(path) as store:
            await store.record_conversation("assistant", user, [{"role": "user", "content": "Hello."}])
        _execute(path, "CREATE TABLE invoices (id INTEGER PRIMARY KEY, customer TEXT)")
        _execute(path, f"INSERT INTO invoices (customer) VALUES ('{user}')")
        _execute(path, "CREATE TABLE alembic_version (version_num TEXT)")
        _execute(path, f"INSERT INTO alembic_version VALUES ('{user}')")
    users = "SELECT DISTINCT user_id FROM conversations"
    others = "SELECT customer, version_num FROM invoices, alembic_version"
    assert await asyncio.to_thread(main, ["copy", source, target]) == 2
    assert "1 of conversations" in capsys.readouterr().err
    assert rows_in(target, users) == [("bob",)]
    assert await asyncio.to_thread(main, ["copy", source, target, "--yes"]) == 0
    assert rows_in(target, users) == [("ada",)]
    assert rows_in(target, others) == [("bob", "bob")]
    with pytest.raises(SchemaMismatchError, match="'alembic_version' has no primary key"):
        await copy_database(source, target)


async def test_a_copy_of_items_of_the_store_can_be_repeated(tmp_path: Path) -> None:
    source, target = str(tmp_path / "source.db"), str(tmp_path / "target.db")
    async with Store(source) as store:
        await store.aput(("users", "ada"), "city", {"name": "Porto"})
    for _ in range(2):
        assert await asyncio.to_thread(main, ["copy", source, target]) == 0
        async with Store(source) as store:
            await store.aput(("users", "ada"), "city", {"name": "Lisbon"})
    assert rows_in(target, "SELECT value ->> 'name' FROM langgraph_store_items") == [("Lisbon",)]


async def test_all_tables_of_a_new_file_are_copied(tmp_path: Path) -> None:
    source, target = str(tmp_path / "source.db"), str(tmp_path / "target.db")
    async with store_at(source) as store:
        await store.record_conversation("assistant", "ada", [{"role": "user", "content": "Hello."}])
    await create_tables(source, target)
    named = rows_in(target, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    assert await our_tables(target) == {name for (name,) in named} - {"recollect_migrations"}


def _execute(path: str, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_database_is_not_copied_into_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["copy", str(tmp_path / "none.db"), str(tmp_path / "b.db")]) == 3
    assert main(["copy", "a.db", "a.db"]) == 1
    assert "into itself" in capsys.readouterr().err


async def test_an_export_for_people_has_entries_evidence_and_times(tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    async with store_at(source, workers=1) as store:
        said = [{"role": "user", "content": "I live in Lisbon. It is *sunny*."}]
        await store.record_conversation("assistant", "ada/1", said, created_at="2024-05-07T10:00:00Z")
        await store.drain(timeout=90)
    folder = tmp_path / "people"
    await asyncio.to_thread(main, ["export", "--all", "--markdown", "--url", source, "--output", str(folder)])
    (file,) = folder.iterdir()
    text = file.read_text()
    assert text.startswith("# ada/1\n")
    assert "said 2024-05-07" in text
    assert "2024-05-07, user: “I live in Lisbon. It is \\*sunny\\*.”" in text


def test_documents_are_compared_by_their_contents() -> None:
    assert compared(("jsonb",), ('{"a": 1, "b": 2}',)) == compared(("jsonb",), ('{"b": 2, "a": 1}',))


@pytest.mark.parametrize("learn", [True, False])
async def test_only_what_waited_is_learned_from_after_an_import(tmp_path: Path, learn: bool) -> None:
    source, target, other = (str(tmp_path / f"{name}.db") for name in ("source", "target", "other"))
    lines = tmp_path / "all.jsonl"
    said = [{"role": "user", "content": "I live in Lisbon."}]
    async with store_at(source) as store:
        for name, quiet in (("never", math.inf), ("waits", 3600.0)):
            await store.open_conversation("assistant", "ada", conversation_id=name)
            await store.append_messages(name, said, learn_after=quiet)
        await asyncio.to_thread(main, ["export", "--all", "--url", source, "--output", str(lines)])
        exported = await store.export_user("ada")
    query = "SELECT conversation_id, waiting_from FROM conversations WHERE learn_at >= 1e12"
    await import_from("jsonl", lines, target, learn=learn)
    assert rows_in(target, query) == ([("waits", 0)] if learn else [])
    async with store_at(other) as store:
        await store.import_user(exported)
    assert rows_in(other, query) == [("waits", 0)]
    assert rows_in(other, "SELECT count(*) FROM conversations WHERE learn_at IS NOT NULL") == [(1,)]


async def test_a_run_that_merged_entries_is_imported(tmp_path: Path) -> None:
    source, target, other = (str(tmp_path / f"{name}.db") for name in ("source", "target", "other"))
    lines = tmp_path / "all.jsonl"
    async with store_at(source, workers=1) as store:
        said = [{"role": "user", "content": "I live in Lisbon."}]
        await store.record_conversation("assistant", "ada", said)
        await store.drain(timeout=90)
        _execute(source, "UPDATE memory_run_stages SET stage = 'consolidation' WHERE stage = 'mind'")
        await asyncio.to_thread(main, ["export", "--all", "--url", source, "--output", str(lines)])
        exported = await store.export_user("ada")
    report = await import_from("jsonl", lines, target)
    assert (report.added["runs"], report.lost) == (1, 0)
    async with store_at(other) as store:
        assert (await store.import_user(exported))["runs"] == 1


async def test_sessions_of_tenants_stay_apart(url: str) -> None:
    items = [{"role": "user", "content": "Hello."}]

    def lines(session_id: str, *said: dict[str, str], **about: str) -> list[Record]:
        heading = {"session_id": session_id, "user_id": "ada", "data": about, "items": list(said)}
        more = {"session_id": session_id, "items": items}
        return [Record("sessions", heading, "line 1"), Record("items", more, "line 2")]

    async def add(tenant: str, records: list[Record]) -> ImportReport:
        async with store_at(url, tenant=tenant) as store:
            return await Importer(store).run(records)

    async def ids(tenant: str) -> list[str]:
        async with store_at(url, tenant=tenant) as store:
            return [session["session_id"] for session in (await store.export_user("ada"))["sessions"]]

    for tenant in ("default", "acme", "a/b"):
        report = await add(tenant, lines("demo", *items))
        assert (report.added["sessions"], report.added["items"], report.lost) == (1, 2, 0)
    assert await ids("default") == ["demo"]
    assert await ids("acme") == ["tenant:acme/demo"]
    assert await ids("a/b") == ["tenant:a%2Fb/demo"]
    back = await add("acme", lines("tenant:acme/demo", *items, tenant="acme"))
    assert (back.existing["sessions"], back.added.total(), back.lost) == (1, 0, 0)
    for tenant in ("default", "a/b"):  # the export of a tenant goes into another one
        moved = await add(tenant, lines("tenant:acme/demo", *items, tenant="acme"))
        assert (moved.existing["sessions"], moved.added.total(), moved.lost) == (1, 0, 0)
    refused = await add("acme", lines("demo", *items, *items, *items, tenant="acme"))
    assert (refused.added.total(), refused.lost) == (0, 2)
    assert {problem.reason for problem in refused.problems} == {
        "a session of another tenant has this id: it was not changed"
    }


async def test_an_export_for_people_quotes_messages_of_the_same_memory_only(tmp_path: Path) -> None:
    async with store_at(str(tmp_path / "source.db")) as store:
        for user, words in (("ada", "I live in Lisbon."), ("bob", "My pin is 1234.")):
            said = [{"role": "user", "content": words, "message_id": user}]
            await store.record_conversation("assistant", user, said, conversation_id=user)
        cited = [{"conversation_id": user, "message_id": user} for user in ("ada", "bob")]
        fact = {"agent_id": "assistant", "user_id": "ada", "text": "lives in Lisbon", "evidence": cited}
        await Importer(store).run([Record("entries", fact, "line 1")])
        text = "".join([part async for part in describe_user(store, "ada")])
    assert "I live in Lisbon." in text
    assert "1234" not in text


@pytest.mark.parametrize(
    "words",
    [
        ["export", "--all"],
        ["export", "--user", "ada", "--markdown"],
        ["import", "jsonl", "a.jsonl"],
    ],
)
def test_what_a_service_does_not_offer_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--url", "https://memory.example.com"]) == 2
    assert "a service" in capsys.readouterr().err
