"""Bad input: a clear line for each, the rest imported, and an exit code that says so."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from recollect.cli import main
from recollect.moving import importer
from recollect.moving.records import Record

from .kit import import_records, rows_in, store_at, talk, write_lines
from .test_readers import chatgpt, node


def run(kind: str, source: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    """The exit code of the command, its report and its messages."""
    target = source.parent / "new.db"
    code = main(["import", kind, str(source), "--user", "ada", "--url", str(target), "--json"])
    shown = capsys.readouterr()
    return code, json.loads(shown.out) if shown.out else {}, shown.err


def problems(report: dict[str, Any]) -> str:
    return "\n".join(f"{each['where']}: {each['reason']}" for each in report["problems"])


def zipped(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


Capture = pytest.CaptureFixture[str]


def test_a_truncated_zip(tmp_path: Path, capsys: Capture) -> None:
    source = zipped(tmp_path / "a.zip", {"conversations.json": json.dumps([chatgpt()])})
    source.write_bytes(source.read_bytes()[:-40])
    code, _, told = run("chatgpt", source, capsys)
    assert (code, "not a complete zip archive" in told) == (1, True)


def test_damage_inside_a_zip_loses_only_what_follows(tmp_path: Path, capsys: Capture) -> None:
    chats = [chatgpt(conversation_id=f"c{number}", title=os.urandom(300).hex()) for number in range(200)]
    source = zipped(tmp_path / "a.zip", {"conversations.json": json.dumps(chats)})
    data = bytearray(source.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 50] = bytes(50)
    source.write_bytes(data)
    code, report, _ = run("chatgpt", source, capsys)
    assert (code, 0 < report["added"]["conversations"] < 200) == (1, True)
    assert "the archive is damaged after" in problems(report)


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("chatgpt", json.dumps([{"uuid": "c", "chat_messages": []}]), "use the kind claude"),
        ("claude", json.dumps([chatgpt()]), "use the kind chatgpt"),
        ("chatgpt", "hello", "not JSON with a list"),
        ("chatgpt", "", "not JSON with a list"),
        ("letta", json.dumps({"nodes": []}), "not an agent file of Letta"),
        ("graphiti", json.dumps({"agents": []}), "not an export of Graphiti"),
        ("mem0", "\0\0\0", "not JSON with a list"),
        ("jsonl", '[{"kind": "entries"}]', "not a file in the line format"),
        ("jsonl", '{"format": "recollect.user/9"}\n', "unknown format"),
        ("openai-agents", "hello", "not a file of the Agents SDK"),
    ],
)
def test_the_wrong_kind(tmp_path: Path, capsys: Capture, kind: str, content: str, said: str) -> None:
    source = tmp_path / "source"
    source.write_text(content)
    code, _, told = run(kind, source, capsys)
    assert (code, said in told) == (1, True), told


def test_an_archive_that_holds_something_else(tmp_path: Path, capsys: Capture) -> None:
    code, _, told = run("chatgpt", zipped(tmp_path / "a.zip", {"photo.txt": "x"}), capsys)
    assert (code, "holds no file" in told) == (1, True)


def test_paths_that_leave_the_archive_and_bombs_are_not_read(tmp_path: Path, capsys: Capture) -> None:
    good = json.dumps([chatgpt()])
    members = {"../conversations.json": good, "/etc/conversations.json": good}
    members["bomb/conversations.json"] = "[" + " " * 50_000_000 + "]"
    members["data/conversations.json"] = good
    code, report, _ = run("chatgpt", zipped(tmp_path / "a.zip", members), capsys)
    assert (code, report["added"]["conversations"]) == (1, 1)
    told = problems(report)
    assert told.count("its path leaves the archive") == 2
    assert "bomb/conversations.json: it is compressed more than" in told
    assert not (tmp_path.parent / "conversations.json").exists()


@pytest.mark.proof
def test_a_file_of_two_gigabytes_is_read_in_constant_memory(tmp_path: Path, capsys: Capture) -> None:
    """A sparse file: good lines, then a line of 2 GB, then a good line."""
    source = write_lines(tmp_path / "big.jsonl", [talk(1)])
    with source.open("r+b") as file:
        file.seek(2 * 1024**3)
        file.write(b"\n" + json.dumps(talk(2)).encode() + b"\n")
    before = _peak()
    code, report, _ = run("jsonl", source, capsys)
    assert (code, report["added"]["conversations"], report["lost"]) == (1, 2, 1)
    assert "longer than" in problems(report)
    assert _peak() - before < 400_000  # KB: one line of the longest length, and its copy


def _peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_cycles_and_missing_parents_in_a_tree(tmp_path: Path, capsys: Capture) -> None:
    circle = {
        "a": node("a", "b", "user", "one", 1_700_000_000.0),
        "b": node("b", "a", "assistant", "two", 1_700_000_001.0),
    }
    orphan = {
        "q": node("q", "gone", "user", "three", 1_700_000_000.0),
        "r": node("r", "q", "assistant", "four", 1_700_000_001.0),
    }
    chats = [
        chatgpt(conversation_id="circle", mapping=circle, current_node="b"),
        chatgpt(conversation_id="orphan", mapping=orphan, current_node="nowhere"),
        chatgpt(),
    ]
    source = tmp_path / "conversations.json"
    source.write_text(json.dumps(chats))
    code, report, _ = run("chatgpt", source, capsys)
    assert (code, report["added"]["conversations"]) == (1, 3)
    told = problems(report)
    assert "refer to each other in a circle" in told
    assert "follow a message that is missing" in told
    assert "shown last is missing" in told
    said = {row[0] for row in rows_in(tmp_path / "new.db", "SELECT content FROM conversation_messages")}
    assert {"one", "two", "three", "four"} <= said


def test_duplicate_ids(tmp_path: Path, capsys: Capture) -> None:
    double = talk(2, 2)
    for message in double["data"]["messages"]:
        message["message_id"] = "same"
    code, report, _ = run("jsonl", write_lines(tmp_path / "a.jsonl", [talk(1), double, talk(1, 9)]), capsys)
    assert (code, report["added"]) == (1, {"conversations": 2, "messages": 6})
    told = problems(report)
    assert "line 2, message 1: its message_id is used twice" in told
    assert "line 3: its conversation_id is used twice in the source" in told


def test_times_that_no_message_can_have(tmp_path: Path, capsys: Capture) -> None:
    times = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "yesterday", "2023-01-02T10:00:00Z"]
    line = talk(1)
    for message, time in zip(line["data"]["messages"], times, strict=True):
        message["created_at"] = time
    code, report, _ = run("jsonl", write_lines(tmp_path / "a.jsonl", [line]), capsys)
    assert (code, report["added"]["messages"], report["lost"]) == (1, 4, 3)
    told = problems(report)
    assert all(words in told for words in ("before 1970", "in the future", "not a time in ISO 8601"))
    stored = rows_in(
        tmp_path / "new.db", "SELECT created_at FROM conversation_messages ORDER BY message_index"
    )
    assert {row[0][:10] for row in stored} == {"2023-01-02"}


def test_times_of_chatgpt_out_of_the_calendar(tmp_path: Path, capsys: Capture) -> None:
    chat = chatgpt()
    chat["mapping"]["q1"]["message"]["create_time"] = 1e30
    chat["mapping"]["a1"]["message"]["create_time"] = -62_135_596_800
    source = tmp_path / "conversations.json"
    source.write_text(json.dumps([chat]))
    code, report, _ = run("chatgpt", source, capsys)
    assert (code, report["added"]["messages"]) == (1, 4)
    assert "before 1970" in problems(report)


def test_mixed_encodings(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "a.jsonl"
    latin = json.dumps(talk(2), ensure_ascii=False).replace("message 0", "m\u00e9ssage 0").encode("latin-1")
    lone = json.dumps(talk(3)).replace("message 0", r"\ud800").encode()
    marked = b"\xef\xbb\xbf" + json.dumps(talk(1)).encode()
    source.write_bytes(b"\n".join([marked, latin, lone, b"\xff\xfe\x00", b""]))
    code, report, _ = run("jsonl", source, capsys)
    assert (code, report["added"]["conversations"]) == (1, 3)
    told = problems(report)
    assert "line 2: it has bytes that are not UTF-8: they are replaced" in told
    assert "line 4: it is not valid JSON" in told
    wide = tmp_path / "wide.jsonl"
    wide.write_text("\n".join(json.dumps(talk(number)) for number in (7, 8)) + "\n", encoding="utf-16")
    code, report, _ = run("jsonl", wide, capsys)
    assert (code, report["added"]["conversations"]) == (0, 2)


def test_a_file_that_ends_early(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "conversations.json"
    text = json.dumps([chatgpt(), chatgpt(conversation_id="c-2")])
    source.write_text(text[:-100])
    code, report, _ = run("chatgpt", source, capsys)
    assert (code, report["added"]["conversations"]) == (1, 1)
    assert "ends early, after 1 complete" in problems(report)


def test_lines_that_are_wrong_do_not_stop_the_others(tmp_path: Path, capsys: Capture) -> None:
    lines: list[Any] = [talk(1), {"kind": "conversations", "data": 5}, {"kind": "nothing", "data": {}}, 7]
    lines += [
        {"kind": "entries", "data": {"text": " "}},
        {"kind": "entries", "data": {"text": "x", "type": "y"}},
    ]
    lines += [{"kind": "sessions", "data": {}}, {"kind": "runs", "data": {}}, {"kind": "events", "data": {}}]
    lines += [talk(2, 1, agent_id=5), talk(3)]
    code, report, _ = run("jsonl", write_lines(tmp_path / "a.jsonl", lines), capsys)
    assert (code, report["added"]["conversations"], report["lost"]) == (1, 2, 9)


@pytest.mark.anyio
@pytest.mark.parametrize("in_batches", [False, True])
async def test_messages_that_collide_are_lost_and_the_others_are_imported(
    url: str, in_batches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_batches:
        monkeypatch.setattr(importer, "_ROWS", 1)

    def more(number: int, **message: Any) -> Record:
        data = {"conversation_id": f"talk {number}", "messages": [{"role": "user", **message}]}
        return Record("messages", data, f"line {message['content']}")

    with_id = {"role": "user", "content": "first", "message_id": "m1"}
    lines = [
        Record("conversations", {**talk(1)["data"], "messages": [with_id]}, "line 1"),
        more(1, message_id="m1", content="the same id"),
        more(1, message_id="m2", content="another id"),
        Record(**talk(2), where="line 2"),
        more(1, message_index=0, content="the same place"),
        more(1, message_index=7, message_id="m2", content="the same id again"),
        more(1, message_index=9, content="after a gap"),
        Record(**talk(3), where="line 3"),
    ]
    report = await import_records(url, lines)
    assert [(problem.where, problem.reason) for problem in report.problems] == [
        ("line the same id, message 1", "another message of its conversation has its message_id"),
        ("line the same place, message 0", "another message is stored at its place"),
        ("line the same id again, message 7", "another message of its conversation has its message_id"),
    ]
    async with store_at(url) as store:
        stored = await store.get_conversation("talk 1")
        assert stored is not None
        assert [message.content for message in stored.messages] == ["first", "another id", "after a gap"]
        assert await store.get_conversation("talk 3") is not None
    again = await import_records(url, lines)
    assert (again.added.total(), again.lost) == (0, 3)


@pytest.mark.anyio
async def test_an_entry_without_a_place_stands_beside_one_with_a_place(url: str) -> None:
    memory = {"agent_id": "assistant", "user_id": "ada", "memory_id": "m1"}
    entries = [{"memory_id": "m1", "text": "one", "position": 0}, {"memory_id": "m1", "text": "two"}]
    lines = [Record("memories", memory, ""), *(Record("entries", each, "") for each in entries)]
    report = await import_records(url, lines)
    assert (report.added["entries"], report.lost) == (2, 0)
