"""What was found and mended, each in its smallest form; the inputs that showed it are in the corpus."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect.cli.user_data import _read_document, _skipped_kinds
from recollect.errors import ImportFormatError
from recollect.items import group_items, newest_whole
from recollect.items.codec import decode_item
from recollect.memory.database.schema import CONVERSATIONS, MESSAGES
from recollect.memory.rights.imports import parse_export
from recollect.memory.search.dates import NamedDate, named_dates
from recollect.sessions.in_memory import InMemorySession
from recollect.sessions.sdk_import import ImportReport, import_sdk_sessions

_NOW = "2024-05-07 10:00:00.000000"


@pytest.mark.parametrize("caller_id", [[], {}, None, 1])
def test_a_caller_that_is_no_text_belongs_to_no_program(caller_id: Any) -> None:
    items = [{"type": "program", "call_id": "p"}, {"type": "message", "caller": {"caller_id": caller_id}}]
    assert len(set(group_items(items))) == 2
    assert newest_whole(items, 1) == items[1:]


@pytest.mark.parametrize("text", ["in apr\u0131l 2024", "in APR\u0130L 2024"])
def test_a_month_may_be_spelled_with_letters_that_only_fold_to_its_own(text: str) -> None:
    assert named_dates(text)[1] == (NamedDate(2024, 4),)


@pytest.mark.parametrize("user_id", [["u"], {"u": 1}, 7])
def test_an_export_whose_user_is_no_text_is_refused(user_id: Any) -> None:
    memory = {"agent_id": "a", "user_id": "u"}
    with pytest.raises(ImportFormatError, match="one user"):
        parse_export({"user_id": user_id, "memories": [memory]}, "tenant", _NOW)


@pytest.mark.parametrize("memory_id", [["m"], {"m": 1}])
def test_an_export_whose_memory_is_no_text_is_refused(memory_id: Any) -> None:
    memory = {"agent_id": "a", "user_id": "u", "memory_id": memory_id}
    with pytest.raises(ImportFormatError, match="memory_id must be"):
        parse_export({"user_id": "u", "memories": [memory]}, "tenant", _NOW)


def test_an_export_whose_memory_has_a_version_that_no_column_holds_is_refused() -> None:
    memory = {"agent_id": "a", "user_id": "u", "version": 2**70}
    with pytest.raises(ImportFormatError, match="version of memories"):
        parse_export({"user_id": "u", "memories": [memory]}, "tenant", _NOW)


@pytest.mark.parametrize("told", [{"messages": 0.0}, {"messages": None}, {"conversation_data": None}])
def test_a_conversation_whose_messages_are_nothing_has_none(told: Any) -> None:
    conversation = {"agent_id": "a", "user_id": "u", **told}
    reading = parse_export({"user_id": "u", "conversations": [conversation]}, "tenant", _NOW)
    assert [len(reading.of(table)) for table in (CONVERSATIONS, MESSAGES)] == [1, 0]


@pytest.mark.parametrize("stored", [None, 7, 0.5])
def test_a_column_that_holds_no_text_holds_no_item(stored: Any) -> None:
    assert decode_item(stored) is None


@pytest.mark.parametrize("heading", ["[]", '{"format": "recollect.user/2", "entries": "x"}'])
def test_an_export_in_lines_with_an_odd_heading_is_no_crash(heading: str, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text(f'{heading}\n{{"kind": "entries", "data": 1}}\n')
    with pytest.raises(ImportFormatError):
        parse_export(_read_document(path), "tenant", _NOW)


def test_what_an_export_leaves_out_is_counted_where_it_is_a_list() -> None:
    assert _skipped_kinds({"sessions": 5, "events": [1, 2], "summaries": "x"}) == ["2 events"]


# --- files of the Agents SDK ---


def _sdk_file(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE agent_sessions (session_id)")
        connection.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data)")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def _imported(path: Path) -> ImportReport:
    return asyncio.run(import_sdk_sessions(path, InMemorySession))


def test_sessions_and_branches_without_a_name_are_passed_over(tmp_path: Path) -> None:
    path = _sdk_file(
        tmp_path / "sdk.db",
        "INSERT INTO agent_sessions VALUES ('a'), (NULL), (7), (x'ff'), ('a' || char(0))",
        "INSERT INTO agent_messages VALUES (1, 'a', '{\"role\": \"user\"}')",
        "CREATE TABLE message_structure (session_id, message_id, branch_id)",
        "INSERT INTO message_structure VALUES ('a', 1, 'main'), (NULL, 1, 'main'), ('b', 1, NULL)",
    )
    report = _imported(path)
    assert (report.sessions, report.items, report.names_passed_over) == (1, 1, 6)


def test_a_file_whose_schema_is_no_text_any_more_is_refused(tmp_path: Path) -> None:
    path = _sdk_file(tmp_path / "sdk.db")
    path.write_bytes(
        path.read_bytes().replace(b"CREATE TABLE agent_messages", b"CREATE \xff\xfeBLE agent_messages")
    )
    with pytest.raises(ImportFormatError):
        _imported(path)
