"""Importing lines: original times, twice is once, going on after an interruption, learning later."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from recollect.cli import main
from recollect.integrations.langgraph import Store
from recollect.moving import importer
from recollect.moving.importer import Importer
from recollect.moving.readers.lines import record_of
from recollect.moving.records import Record, Skipped
from recollect.moving.schema import LINE_SCHEMA
from recollect.moving.sources import decode

from .kit import import_from, import_records, rows_in, store_at, talk, write_lines

pytestmark = pytest.mark.anyio


async def test_twice_is_once_and_times_are_kept(url: str, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [talk(number) for number in range(30)])
    first = await import_from("jsonl", source, url)
    assert first.added == {"conversations": 30, "messages": 120}
    again = await import_from("jsonl", source, url)
    assert (again.added.total(), again.existing) == (0, {"conversations": 30, "messages": 120})
    assert first.is_complete
    assert again.is_complete
    async with store_at(url) as store:
        conversation = await store.get_conversation("talk 4")
    assert conversation is not None
    assert conversation.created_at.isoformat() == "2023-01-05T10:00:00+00:00"
    assert conversation.messages[3].created_at.isoformat() == "2023-01-05T10:03:00+00:00"


async def test_an_interrupted_import_goes_on(url: str) -> None:
    lines = [Record(**talk(number, 300), where=f"line {number}") for number in range(20)]

    def breaking() -> Iterator[Record | Skipped]:
        yield from lines[:15]
        raise OSError("the disk is gone")

    async with store_at(url) as store:
        with pytest.raises(OSError, match="the disk is gone"):
            await Importer(store).run(breaking())
        report = await Importer(store).run(lines)
        assert report.existing["conversations"] > 0
        assert report.existing["messages"] + report.added["messages"] == 6000
        again = await Importer(store).run(lines)
        assert (again.added.total(), again.existing["messages"]) == (0, 6000)


async def test_a_long_conversation_continues_on_further_lines(url: str, tmp_path: Path) -> None:
    more = {
        "conversation_id": "talk 1",
        "messages": [{"role": "user", "content": f"more {n}"} for n in range(5)],
    }
    lines = [talk(1), {"kind": "messages", "data": more}]
    source = write_lines(tmp_path / "a.jsonl", lines)
    assert (await import_from("jsonl", source, url)).added["messages"] == 9
    assert (await import_from("jsonl", source, url)).existing["messages"] == 9
    async with store_at(url) as store:
        conversation = await store.get_conversation("talk 1")
    assert conversation is not None
    assert [message.message_index for message in conversation.messages] == list(range(9))
    loose = write_lines(
        tmp_path / "b.jsonl", [{"kind": "messages", "data": {**more, "conversation_id": "other"}}]
    )
    report = await import_from("jsonl", loose, url)
    assert (report.lost, report.added.total()) == (1, 0)


async def test_a_newer_export_adds_what_was_said_since(url: str, tmp_path: Path) -> None:
    old = write_lines(tmp_path / "old.jsonl", [talk(1, 4)])
    new = write_lines(tmp_path / "new.jsonl", [talk(1, 6)])
    await import_from("jsonl", old, url)
    report = await import_from("jsonl", new, url)
    assert (report.added["messages"], report.existing["messages"]) == (2, 4)


async def test_what_differs_is_reported_and_not_changed(url: str, tmp_path: Path) -> None:
    await import_from("jsonl", write_lines(tmp_path / "a.jsonl", [talk(1)]), url)
    other = talk(1)
    other["data"]["messages"][2]["content"] = "something else"
    report = await import_from("jsonl", write_lines(tmp_path / "b.jsonl", [other]), url)
    assert (report.lost, report.existing["messages"]) == (1, 3)
    theirs = talk(1, user_id="somebody else")
    report = await import_from("jsonl", write_lines(tmp_path / "c.jsonl", [theirs]), url)
    assert (report.lost, report.added.total()) == (1, 0)


async def test_another_tenant_cannot_reach_a_conversation(url: str) -> None:
    line = Record(**talk(1), where="line 1")
    async with store_at(url) as store:
        await Importer(store).run([line])
    async with store_at(url, tenant="other") as store:
        report = await Importer(store).run([line])
        assert (report.lost, report.added.total()) == (1, 0)
        entry = {"text": "Ada lives in Lisbon", "memory_id": "nobody's"}
        report = await Importer(store).run([Record("entries", entry, "line 2")])
        assert (report.lost, report.added.total()) == (1, 0)


async def test_lines_of_another_tenant_are_lost_and_not_counted_as_existing(url: str) -> None:
    owner = {"user_id": "ada", "agent_id": "assistant"}
    async with store_at(url, workers=1) as store:
        await store.record_conversation(**owner, messages=[{"role": "user", "content": "I live in Lisbon."}])
        await store.drain(60)
        await Importer(store).run([Record("summaries", summary_of("s"), "line 1")])
        session = Record("sessions", {"session_id": "s", "items": []}, "line 2")
        await Importer(store).run([session])
        exported = [line async for line in store.export_user_lines("ada")][1:]
    lines = [Record(**line, where=f"line {number}") for number, line in enumerate(exported)]
    assert {line.kind for line in lines} == {"memories", "conversations", "runs", "entries"}
    lines.append(Record("summaries", summary_of("s"), "the summary"))
    async with store_at(url, tenant="other") as store:
        report = await Importer(store).run(lines)
    assert (report.existing, report.added.total(), report.lost) == ({}, 0, len(lines))


def summary_of(conversation_id: str) -> dict[str, Any]:
    values = {"id": f"summary of {conversation_id}", "conversation_id": conversation_id, "version": 1}
    return {**values, "text": "So far.", "token_length": 2, "created_at": "2024-01-01T00:00:00Z"}


async def test_entries_keep_times_history_and_evidence(url: str, tmp_path: Path) -> None:
    owner = {"user_id": "ada", "agent_id": "assistant"}
    old = {**owner, "content_id": "old", "text": "Ada lives in Porto", "learned_at": "2020-01-01T00:00:00Z"}
    old |= {"retired_at": "2022-05-01T00:00:00Z", "superseded_by": "new", "valid_to": "2022-05"}
    new = {**owner, "content_id": "new", "text": "Ada lives in Lisbon", "learned_at": "2022-05-01T00:00:00Z"}
    new["evidence"] = [{"conversation_id": "talk 1", "message_id": "m1"}]
    said = talk(1, 0, user_id="ada")
    said["data"]["messages"] = [{"role": "user", "content": "I moved to Lisbon", "message_id": "m1"}]
    lines = [said, *({"kind": "entries", "data": each} for each in (old, new))]
    source = write_lines(tmp_path / "a.jsonl", lines)
    assert (await import_from("jsonl", source, url)).added["entries"] == 2
    assert (await import_from("jsonl", source, url)).existing["entries"] == 2
    async with store_at(url) as store:
        (current,) = await store.list_entries("assistant", "ada")
        assert (current.text, current.learned_at.year, current.supersedes) == (
            "Ada lives in Lisbon",
            2022,
            ("old",),
        )
        (past,) = await store.list_entries("assistant", "ada", as_of="2021-01-01")
        assert past.text == "Ada lives in Porto"
        why = await store.why("new")
        assert why is not None
        assert "I moved to Lisbon" in json.dumps(why.to_dict())


async def test_a_secret_in_an_entry_is_masked(tmp_path: Path) -> None:
    entry = {"user_id": "ada", "agent_id": "a", "text": "The password of Ada is hunter2hunter2"}
    source = write_lines(tmp_path / "a.jsonl", [{"kind": "entries", "data": entry}])
    await import_from("jsonl", source, str(tmp_path / "new.db"))
    assert "hunter2" not in str(rows_in(tmp_path / "new.db", "SELECT * FROM memory_contents"))


async def test_imported_history_is_learned_with_its_times_when_nothing_else_waits(url: str) -> None:
    def said(number: int, year: int, text: str) -> Record:
        time = f"{year}-03-02T10:00:00Z"
        data = {
            "conversation_id": f"c{number}",
            "created_at": time,
            "messages": [{"role": "user", "content": text}],
        }
        return Record("conversations", {"agent_id": "assistant", "user_id": "ada", **data}, f"line {number}")

    lines = [said(1, 2025, "I moved to Lisbon yesterday."), said(2, 2021, "I moved to Porto yesterday.")]
    async with store_at(url, workers=2) as store:
        await Importer(store, learn=True).run(lines)
        await store.drain(timeout=90)
        runs = await store.list_runs()
        order = sorted(runs, key=lambda run: run.created_at)
        assert [run.conversation_id for run in order] == ["c2", "c1"]
        texts = [entry.text for entry in await store.list_entries("assistant", "ada", include_retired=True)]
        assert any("1 March 2025" in text for text in texts)
        assert any("1 March 2021" in text for text in texts)


async def test_a_live_conversation_is_learned_before_the_backlog(tmp_path: Path) -> None:
    from recollect.memory.pipeline.scheduler import RunScheduler

    async with store_at(str(tmp_path / "new.db")) as store:
        lines = [Record(**talk(number, 2, user_id="ada"), where="") for number in range(5)]
        await Importer(store, learn=True).run(lines)
        await store.record_conversation("assistant", "bob", [{"role": "user", "content": "I like tea."}])
        scheduler = RunScheduler(store.memory_database, "default")
        assert await scheduler.step() == 0  # a live run waits
        await store.memory_database.write(_finish_all)
        assert [await scheduler.step() for _ in range(2)] == [1, 0]  # one conversation of a memory at a time
        (run,) = [run for run in await store.list_runs() if run.status == "pending"]
        assert run.conversation_id == "talk 0"


def _finish_all():  # type: ignore[no-untyped-def]
    from recollect.sql.scripts import Statement

    yield Statement("UPDATE memory_runs SET status = 'done', is_open = 0")
    yield Statement("DELETE FROM memory_queue")


def test_the_schema_describes_the_lines() -> None:
    check = jsonschema.Draft202012Validator(LINE_SCHEMA)
    jsonschema.Draft202012Validator.check_schema(LINE_SCHEMA)
    check.validate(talk(1))
    check.validate({"kind": "entries", "data": {"user_id": "ada", "text": "Ada lives in Lisbon"}})
    check.validate({"format": "recollect.user/2", "user_id": None, "agent_id": None})
    assert not check.is_valid(
        {"kind": "conversations", "data": {"messages": [{"role": "robot", "content": "x"}]}}
    )
    assert not check.is_valid({"kind": "entries", "data": {"user_id": "ada"}})
    assert not check.is_valid({"kind": "others", "data": {}})


def test_the_published_schema_is_the_one_of_the_code() -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "reference" / "import-lines.schema.json"
    assert json.loads(page.read_text()) == LINE_SCHEMA


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_lines(tmp_path / "a.jsonl", [talk(1), "not json"])
    target = tmp_path / "new.db"
    assert main(["import", "jsonl", str(source), "--dry-run", "--url", str(target)]) == 1
    shown = capsys.readouterr()
    assert "message 0 of conversation 1" in shown.out
    assert "a.jsonl, line 2: it is not valid JSON" in shown.err
    assert not target.exists()
    assert main(["import", "jsonl", str(source), "--url", str(target), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["added"], report["lost"]) == ({"conversations": 1, "messages": 4}, 1)
    assert asyncio.run(_waiting(target)) == 1


async def _waiting(target: Path) -> int:
    return len(rows_in(target, "SELECT 1 FROM conversations WHERE learn_at IS NOT NULL"))


async def _store_item(url: Path) -> list[Any]:
    async with Store(str(url)) as store:
        return [item.value for item in await store.asearch(("users",))]


def _item(key: str, **more: Any) -> dict[str, Any]:
    time = "2024-05-07T10:00:00Z"
    value = {"namespace": ["users", "ada"], "key": key, "value": {"city": "Porto"}, "user_id": "ada"}
    return {"kind": "store_items", "data": {**value, "created_at": time, "updated_at": time, **more}}


@pytest.mark.parametrize("words", [("jsonl",), ()], ids=["with a kind", "a file"])
def test_items_of_the_store_are_imported_with_the_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    compact = json.dumps(_item("home"), separators=(",", ":"))
    source = write_lines(tmp_path / "a.jsonl", [talk(1), compact, _item("work", namespace="no list")])
    target = tmp_path / "new.db"
    command = ["import", *words, str(source), "--url", str(target), "--json"]
    assert main([*command, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["added"]["store_items"] == 2
    assert not target.exists()
    other = str(tmp_path / "other.db")
    assert main(["import", *words, str(source), "--url", other, "--tenant", "acme", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["lost"] == 2
    for added, existing in ((1, 0), (0, 1)):
        assert main(command) == 1
        report = json.loads(capsys.readouterr().out)
        assert [problem["where"] for problem in report["problems"]] == ["a.jsonl, line 3"]
        assert (report["added"]["store_items"], report["existing"]["store_items"]) == (added, existing)
    assert asyncio.run(_store_item(target)) == [{"city": "Porto"}]


def test_a_dry_run_of_a_document_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "ada.json", tmp_path / "new.db"
    source.write_text(json.dumps({"format": "recollect.user/2", "memories": []}, indent=1))
    assert main(["import", str(source), "--dry-run", "--url", str(target)]) == 2
    assert "--dry-run needs" in capsys.readouterr().err
    assert not target.exists()


async def test_large_records_without_messages_are_written_before_more_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "_BYTES", 10_000)
    held, most = 0, 0

    def written(_: object) -> None:
        nonlocal held
        held = 0

    async def read() -> AsyncIterator[Record | Skipped]:
        nonlocal held, most
        for number in range(20):
            data = {"user_id": "ada", "text": f"fact {number}", "content_data": {"more": "x" * 4000}}
            line = json.dumps({"kind": "entries", "data": data}).encode()
            held += len(line)
            most = max(most, held)
            for value in decode(f"line {number}", line):
                for record in record_of(value, is_first=False):
                    yield record

    async with store_at(str(tmp_path / "new.db")) as store:
        report = await Importer(store, agent_id="assistant", on_progress=written).run(read())
    assert (report.added["entries"], report.lost) == (20, 0)
    assert most < 15_000


async def test_session_that_grows_has_the_tokens_and_the_time_of_its_newest_items(url: str) -> None:
    def part(count: int, tokens: int) -> list[Record]:
        session = {"session_id": "s1", "created_at": "2026-01-01T10:00:00Z"}
        items = [{"role": "user", "content": f"message {number}"} for number in range(count)]
        times = [f"2026-01-01T10:0{number}:00Z" for number in range(count)]
        usage = [{"user_turn_number": 1, "requests": 1, "input_tokens": tokens, "total_tokens": tokens}]
        given = {"session_id": "s1", "items": items, "times": times, "usage": usage}
        return [Record("sessions", session, "s1"), Record("items", given, "s1")]

    for count, tokens in ((1, 10), (3, 25), (3, 25)):
        assert (await import_records(url, part(count, tokens))).is_complete
    async with store_at(url) as store:
        query = "SELECT count(*), sum(input_tokens) FROM turn_usage"
        assert await store.memory_database.fetch(query, (), list[tuple[int, int]]) == [(1, 25)]
        query = "SELECT CAST(updated_at AS TEXT) FROM agent_sessions"
        ((updated,),) = await store.memory_database.fetch(query, (), list[tuple[str]])
    assert updated.startswith("2026-01-01 10:02")
