"""Showing, exporting, importing, shortening and undoing a history."""

import asyncio
import json
import os
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import (
    ImportFormatError,
    InMemorySession,
    SessionSettings,
    SQLiteSession,
    compress_history,
    export_session,
    find_orphans,
    import_session,
    items_to_messages,
    reset_session,
    undo_items,
    undo_turn,
)
from recollect.testing.contract import ODD_ITEMS, in_event_loop, message, texts

from ..histories import Item, broken_histories, histories, odd_items, quick
from .sqlite.test_bad_input import as_nobody, run_sql
from .sqlite.test_processes import in_child


def system(text: str) -> Item:
    return {"role": "system", "content": text}


def answer(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def thought(name: str) -> Item:
    return {"type": "reasoning", "id": name, "summary": []}


def call(call_id: str) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "look_up", "arguments": "{}"}


def output(call_id: str) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": "found"}


async def session_of(items: list[Item]) -> InMemorySession:
    session = InMemorySession("s")
    await session.add_items(items)
    return session


def is_subsequence(part: list[Any], whole: list[Any]) -> bool:
    rest = iter(whole)
    return all(any(item == other for other in rest) for item in part)


class FourMethods:
    """A session with what the Runner asks for, and nothing else."""

    session_id = "four"
    session_settings = None

    def __init__(self, items: list[Item]) -> None:
        self.items = items

    async def get_items(self, limit: int | None = None) -> list[Item]:
        return self.items if limit is None else self.items[-limit:]

    async def add_items(self, items: list[Item]) -> None:
        self.items += items

    async def pop_item(self) -> Item | None:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


# --- showing ---


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        ({"role": "user", "content": "hi"}, {"role": "user", "content": "hi"}),
        (
            {"type": "message", "role": "developer", "content": "be kind"},
            {"role": "developer", "content": "be kind"},
        ),
        (system("你好"), {"role": "system", "content": "你好"}),
        (answer("hello"), {"role": "assistant", "content": "hello"}),
        (
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "what is"},
                    {"type": "input_image", "image_url": "https://example.com/a.png"},
                    {"type": "input_text", "text": "this?"},
                ],
            },
            {"role": "user", "content": "what is\nthis?"},
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not"}]},
            {"role": "assistant", "content": "I will not"},
        ),
        (call("c"), {"role": "system", "content": "[Tool call: look_up]"}),
        (
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            {"role": "system", "content": "[Tool call: shell_call]"},
        ),
        (output("c"), {"role": "system", "content": "[Tool result: found]"}),
        (
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [
                    {"type": "input_text", "text": "1"},
                    {"type": "input_text", "text": "2"},
                ],
            },
            {"role": "system", "content": "[Tool result: 1\n2]"},
        ),
    ],
    ids=lambda value: value.get("type", value.get("role")),
)
def test_an_item_is_shown_as_role_and_text(item: Item, shown: dict[str, str]) -> None:
    assert items_to_messages([item]) == [shown]


@pytest.mark.parametrize(
    "item",
    [
        thought("r"),
        {"type": "compaction", "encrypted_content": "gAAAA"},
        {"type": "from_the_future"},
        {"type": "message"},
        {},
    ],
    ids=repr,
)
def test_what_says_nothing_to_a_person_is_not_shown(item: Item) -> None:
    assert items_to_messages([message("before"), item]) == [message("before")]


@pytest.mark.parametrize(
    ("length", "shown"),
    [(99, "x" * 99), (100, "x" * 100), (101, "x" * 100 + "..."), (5000, "x" * 100 + "...")],
)
def test_tool_output_is_shortened_to_100_characters(length: int, shown: str) -> None:
    long = {"type": "function_call_output", "call_id": "c", "output": "x" * length}
    assert items_to_messages([long])[0]["content"] == f"[Tool result: {shown}]"


def test_what_people_said_is_not_shortened() -> None:
    assert items_to_messages([message("x" * 5000)]) == [message("x" * 5000)]


@quick
@given(histories() | st.lists(odd_items(), max_size=5))
def test_any_history_can_be_shown(items: list[Item]) -> None:
    for shown in items_to_messages(items):
        assert list(shown) == ["role", "content"]
        assert all(isinstance(value, str) for value in shown.values())


# --- export ---


@in_event_loop
async def test_a_json_export_is_one_document(tmp_path: Path) -> None:
    items = [message("你好"), call("c"), output("c")]
    path = tmp_path / "export.json"
    assert await export_session(await session_of(items), path) == 3
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document == {"session_id": "s", "item_count": 3, "items": items}
    assert list(document) == ["session_id", "item_count", "items"]
    assert "你好" in path.read_text(encoding="utf-8"), "a person can read it"


@in_event_loop
async def test_a_json_lines_export_has_one_item_a_line(tmp_path: Path) -> None:
    items = [message("two\nlines \u2028 你好"), call("c"), output("c")]
    path = tmp_path / "export.jsonl"
    assert await export_session(await session_of(items), path) == 3
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert [json.loads(line) for line in lines] == items
    assert "你好" in lines[0]


@in_event_loop
async def test_an_empty_session_can_be_exported_and_imported(tmp_path: Path) -> None:
    for name in ("empty.json", "empty.jsonl"):
        assert await export_session(await session_of([]), tmp_path / name) == 0
        session = await session_of([message("old")])
        assert await import_session(session, tmp_path / name) == 0
        assert await session.get_items() == []
    assert json.loads((tmp_path / "empty.json").read_text()) == {
        "session_id": "s",
        "item_count": 0,
        "items": [],
    }


@pytest.mark.parametrize("name", ["export.json", "export.jsonl", "export.ndjson", "export", "export.txt"])
@in_event_loop
async def test_odd_items_come_back_exactly(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert await export_session(await session_of(ODD_ITEMS), path) == len(ODD_ITEMS)
    session = await session_of([message("old")])
    assert await import_session(session, str(path)) == len(ODD_ITEMS)
    assert repr(await session.get_items()) == repr(ODD_ITEMS), "values, types, and the order of keys"


@pytest.mark.parametrize("as_format", ["json", "jsonl"])
def test_any_items_come_back_exactly(tmp_path: Path, as_format: Any) -> None:
    path = tmp_path / "export"

    @quick
    @given(st.lists(odd_items(), max_size=4))
    @in_event_loop
    async def round_trip(items: list[Item]) -> None:
        await export_session(FourMethods(items), path, as_format)
        session = InMemorySession("s")
        await import_session(session, path, as_format)
        assert repr(await session.get_items()) == repr(items)

    round_trip()


@in_event_loop
async def test_a_given_format_wins_over_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "lines.json"
    await export_session(await session_of([message("a"), message("b")]), path, "jsonl")
    assert len(path.read_text().splitlines()) == 2
    with pytest.raises(ImportFormatError):
        await import_session(InMemorySession("s"), path)
    assert await import_session(InMemorySession("s"), path, "jsonl") == 2


@in_event_loop
async def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    session = await session_of([message("a")])
    path = tmp_path / "export.json"
    with pytest.raises(ValueError, match="'csv'"):
        await export_session(session, path, "csv")  # type: ignore[arg-type]
    assert not path.exists()
    path.write_text("[]")
    with pytest.raises(ValueError, match="'csv'"):
        await import_session(session, path, "csv")  # type: ignore[arg-type]
    assert texts(await session.get_items()) == ["a"]


@in_event_loop
async def test_an_export_makes_folders_and_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "export.json"
    await export_session(await session_of([message("x" * 1000)]), path)
    await export_session(await session_of([message("new")]), path)
    assert json.loads(path.read_text())["items"] == [message("new")]
    assert os.listdir(path.parent) == ["export.json"], "nothing else is left"


@in_event_loop
async def test_a_session_with_only_the_four_methods_can_be_exported(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    assert await export_session(FourMethods([message("a")]), path) == 1
    assert json.loads(path.read_text())["session_id"] == "four"


@in_event_loop
async def test_an_export_that_cannot_be_put_in_place_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a folder"
    path.mkdir()
    with pytest.raises(OSError, match="a folder"):
        await export_session(await session_of([message("a")]), path)
    assert os.listdir(tmp_path) == ["a folder"]
    assert os.listdir(path) == []


def test_an_export_on_a_full_disk_leaves_the_older_one_and_nothing_else(tmp_path: Path) -> None:
    """The size of files is limited for a child process: as if the disk ended there."""
    path = tmp_path / "export.json"
    path.write_text("the older one")

    def fill_up() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        with pytest.raises(OSError, match="too large"):
            asyncio.run(export_session(FourMethods([message("x" * 100_000)]), path))

    assert in_child(fill_up) == 0
    assert os.listdir(tmp_path) == ["export.json"]
    assert path.read_text() == "the older one"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_an_export_to_a_folder_that_cannot_be_written_to_leaves_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)

    def export() -> None:
        with pytest.raises(PermissionError):
            asyncio.run(export_session(FourMethods([message("a")]), "export.json"))

    def from_inside() -> None:
        os.chdir(tmp_path)  # as root: the folders above may be closed to others
        assert as_nobody(export) == 0

    assert in_child(from_inside) == 0
    assert os.listdir(tmp_path) == []


@in_event_loop
async def test_an_export_is_whole_whatever_the_default_limit(tmp_path: Path) -> None:
    session = await session_of([message(n) for n in range(5)])
    session.session_settings = SessionSettings(limit=2)
    assert await export_session(session, tmp_path / "export.json") == 5


# --- import ---


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.json", b'[{"role": "user", "content": "a"}]'),
        ("bom.json", b'\xef\xbb\xbf[{"role": "user", "content": "a"}]'),
        ("no count.json", b'{"items": [{"role": "user", "content": "a"}]}'),
        ("more.json", b'{"v": 1, "item_count": 1, "items": [{"role": "user", "content": "a"}]}'),
        ("windows.jsonl", b'\xef\xbb\xbf{"role": "user", "content": "a"}\r\n\r\n'),
        ("no end.jsonl", b'{"role": "user", "content": "a"}'),
        ("blank.jsonl", b'\n  \n{"role": "user", "content": "a"}\n\n'),
    ],
)
@in_event_loop
async def test_files_of_others_are_understood(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    session = await session_of([message("old"), message("older")])
    assert await import_session(session, tmp_path / name) == 1
    assert await session.get_items() == [message("a")]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.json", b"", "not a JSON document"),
        ("text.json", b"dear diary", "not a JSON document"),
        ("cut.json", b'{"session_id": "s", "item_count": 1, "items": [{"role": "us', "not a JSON document"),
        ("deep.json", b"[" * 100_000, "not a JSON document"),
        ("number.json", b"7", "no list of items"),
        ("other.json", b'{"messages": []}', "no list of items"),
        ("object.json", b'{"items": {"role": "user"}}', "no list of items"),
        ("few.json", b'{"item_count": 3, "items": [{}, {}]}', "declares 3 items but contains 2"),
        ("many.json", b'{"item_count": 1, "items": [{}, {}]}', "declares 1 items but contains 2"),
        ("texts.json", b'{"items": [{}, "text"]}', "item 1"),
        ("nulls.json", b"[{}, {}, null]", "item 2"),
        ("nan.json", b'[{"n": NaN}]', "n is nan"),
        ("infinite.json", b'[{"n": [-Infinity]}]', r"n\[0\] is -inf"),
        ("binary.json", b"\x89PNG\r\n\x1a\n\x00\xff", r"binary\.json is not a text file in UTF-8"),
        ("utf16.json", '[{"role": "user"}]'.encode("utf-16"), "not a text file in UTF-8"),
        ("text.jsonl", b'{"role": "user"}\ndear diary\n', "line 2 is not a JSON object"),
        ("cut.jsonl", b'{"role": "user"}\n\n{"role": "us', "line 3 is not a JSON object"),
        ("list.jsonl", b"[]\n", "line 1 is not a JSON object"),
        ("two.jsonl", b'{} {"a": 1}\n', "line 1 is not a JSON object"),
        ("nan.jsonl", b'{"n": NaN}\n', "n is nan"),
        ("binary.jsonl", b"\x89PNG\r\n\x1a\n\x00\xff", r"binary\.jsonl is not a text file in UTF-8"),
        ("zeros.jsonl", b"\x00" * 100, "line 1 is not a JSON object"),
    ],
)
@in_event_loop
async def test_a_bad_file_is_explained_and_changes_nothing(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    session = await session_of([message("kept")])
    before = await session.read_after(0)
    with pytest.raises((ImportFormatError, TypeError), match=reason):
        await import_session(session, tmp_path / name)
    assert await session.read_after(0) == before


@in_event_loop
async def test_a_missing_file_or_a_folder_changes_nothing(tmp_path: Path) -> None:
    session = await session_of([message("kept")])
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        await import_session(session, tmp_path / "nowhere.json")
    with pytest.raises(IsADirectoryError):
        await import_session(session, tmp_path)
    assert texts(await session.get_items()) == ["kept"]


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.99])
@in_event_loop
async def test_a_truncated_export_changes_nothing(tmp_path: Path, cut: float) -> None:
    path = tmp_path / "export.json"
    await export_session(await session_of([message(n) for n in range(10)]), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * cut)])
    session = await session_of([message("kept")])
    with pytest.raises(ImportFormatError):
        await import_session(session, path)
    assert texts(await session.get_items()) == ["kept"]


@in_event_loop
async def test_an_import_is_seen_whole_or_not_at_all(tmp_path: Path) -> None:
    old, new = [message(f"old {n}") for n in range(50)], [message(f"new {n}") for n in range(80)]
    await export_session(FourMethods(new), tmp_path / "new.json")
    async with SQLiteSession("s", tmp_path / "s.db") as session:
        await session.add_items(old)
        importing = asyncio.create_task(import_session(session, tmp_path / "new.json"))
        seen = []
        while not importing.done():
            seen.append(await session.get_items())
            await asyncio.sleep(0)
        assert await importing == 80
        assert all(items in (old, new) for items in seen)
        assert await session.get_items() == new


# --- compress ---


@in_event_loop
async def test_compress_keeps_the_newest_and_counts() -> None:
    session = await session_of([message(n) for n in range(30)])
    assert await compress_history(session) == (30, 20)
    assert texts(await session.get_items()) == [str(n) for n in range(10, 30)]
    assert await compress_history(session, target_count=3) == (20, 3)
    assert texts(await session.get_items()) == ["27", "28", "29"]


@in_event_loop
async def test_compress_keeps_system_messages_in_their_places() -> None:
    items = [system("a"), message(1), message(2), system("b"), message(3), message(4), message(5)]
    session = await session_of(items)
    assert await compress_history(session, target_count=4) == (7, 4)
    assert texts(await session.get_items()) == ["a", "b", "4", "5"]


@in_event_loop
async def test_compress_treats_system_messages_as_all_others_if_asked() -> None:
    session = await session_of([system("a"), message(1), message(2), system("b"), message(3)])
    assert await compress_history(session, target_count=2, preserve_system=False) == (5, 2)
    assert texts(await session.get_items()) == ["b", "3"]


@in_event_loop
async def test_compress_to_fewer_than_the_system_messages_keeps_only_them() -> None:
    session = await session_of([system("a"), system("b"), message(1), system("c"), message(2)])
    assert await compress_history(session, target_count=2) == (5, 3)
    assert texts(await session.get_items()) == ["a", "b", "c"]


@in_event_loop
async def test_compress_to_nothing() -> None:
    session = await session_of([system("a"), message(1), message(2)])
    assert await compress_history(session, target_count=0) == (3, 1)
    assert texts(await session.get_items()) == ["a"]
    assert await compress_history(session, target_count=0, preserve_system=False) == (1, 0)
    assert await session.get_items() == []
    assert await compress_history(session) == (0, 0)


@in_event_loop
async def test_compress_drops_a_call_with_its_thought_if_its_output_alone_would_fit() -> None:
    items = [message(1), thought("r"), call("a"), output("a"), answer("done"), message(2)]
    for target, kept in ((3, items[4:]), (4, items[4:]), (5, items[1:])):
        session = await session_of(items)
        assert await compress_history(session, target) == (6, len(kept))
        assert await session.get_items() == kept


@pytest.mark.parametrize("count", [3, 4, 1000])
@in_event_loop
async def test_compress_leaves_a_short_history_as_it_is(count: int) -> None:
    async with SQLiteSession("s") as session:
        await session.add_items([message(1), message(2), system("last")])
        before = await session.read_after(0)
        assert await compress_history(session, count) == (3, 3)
        assert await session.read_after(0) == before


@in_event_loop
async def test_a_negative_target_is_refused() -> None:
    session = await session_of([message(1)])
    with pytest.raises(ValueError, match="target_count must not be negative"):
        await compress_history(session, target_count=-1)
    assert texts(await session.get_items()) == ["1"]


@quick
@given(histories(), st.integers(0, 25), st.booleans())
@in_event_loop
async def test_compress_never_leaves_an_orphan(items: list[Item], target: int, preserve_system: bool) -> None:
    session = await session_of(items)
    counts = await compress_history(session, target, preserve_system)
    kept = await session.get_items()
    instructions = ("system", "developer") if preserve_system else ()
    systems = [item for item in items if item.get("role") in instructions]
    assert find_orphans(kept) == []
    assert is_subsequence(kept, items)
    assert is_subsequence(systems, kept)
    assert len(kept) <= max(target, len(systems))
    assert counts == (len(items), len(kept))


# --- undo ---


@pytest.mark.parametrize(("count", "left"), [(0, "abc"), (1, "ab"), (2, "a"), (3, ""), (99, "")])
@in_event_loop
async def test_undo_removes_and_returns_the_newest(count: int, left: str) -> None:
    session = await session_of([message(letter) for letter in "abc"])
    assert texts(await undo_items(session, count)) == list("abc"[len(left) :])
    assert texts(await session.get_items()) == list(left)


@in_event_loop
async def test_undo_takes_one_item_unless_told() -> None:
    session = await session_of([message("a"), message("b")])
    assert texts(await undo_items(session)) == ["b"]
    assert await undo_items(session) == [message("a")]
    assert await undo_items(session) == []


@in_event_loop
async def test_undo_takes_a_call_with_its_output_and_thought() -> None:
    items = [message(1), answer("before"), thought("r"), call("a"), output("a")]
    session = await session_of(items)
    assert await undo_items(session, 1) == items[2:]
    assert await session.get_items() == items[:2]


@in_event_loop
async def test_undo_of_an_answer_leaves_the_tool_call_before_it() -> None:
    items = [message(1), call("a"), output("a"), answer("done")]
    session = await session_of(items)
    assert await undo_items(session, 1) == items[3:]
    assert await session.get_items() == items[:3]


@in_event_loop
async def test_undo_of_nothing_changes_no_position() -> None:
    async with SQLiteSession("s") as session:
        await session.add_items([message(1), message(2)])
        before = await session.read_after(0)
        assert await undo_items(session, 0) == []
        assert await session.read_after(0) == before


@in_event_loop
async def test_undo_of_a_negative_count_is_refused() -> None:
    session = await session_of([message(1)])
    with pytest.raises(ValueError, match="count must not be negative"):
        await undo_items(session, -1)
    assert texts(await session.get_items()) == ["1"]


@quick
@given(histories(), st.integers(0, 25))
@in_event_loop
async def test_undo_never_leaves_an_orphan(items: list[Item], count: int) -> None:
    session = await session_of(items)
    removed = await undo_items(session, count)
    left = await session.get_items()
    assert find_orphans(left) == []
    assert len(left) + len(removed) == len(items)
    assert len(removed) >= min(count, len(items))
    assert removed[len(removed) - min(count, len(items)) :] == items[len(items) - min(count, len(items)) :]
    assert is_subsequence(left, items)
    assert is_subsequence(removed, items)


@in_event_loop
async def test_undo_turn_goes_back_turn_by_turn() -> None:
    turns = [
        [message("one"), call("a"), output("a"), answer("1")],
        [message("two"), answer("2")],
        [message("three")],
    ]
    session = await session_of([system("be kind"), *turns[0], *turns[1], *turns[2]])
    for turn in reversed(turns):
        assert await undo_turn(session) == turn
    assert await session.get_items() == [system("be kind")]


@in_event_loop
async def test_undo_turn_takes_the_call_that_the_turn_answered() -> None:
    items = [message("delete it"), call("a"), message("yes, do"), output("a")]
    session = await session_of(items)
    assert await undo_turn(session) == items[1:]
    assert await session.get_items() == items[:1]


@in_event_loop
async def test_undo_turn_without_a_user_message_takes_nothing() -> None:
    items = [system("be kind"), answer("hello")]
    session = await session_of(items)
    assert await undo_turn(session) == []
    assert await session.get_items() == items


@in_event_loop
async def test_undo_turn_of_an_empty_session_is_harmless() -> None:
    assert await undo_turn(InMemorySession("s")) == []
    async with SQLiteSession("s") as session:
        assert await undo_turn(session) == []


@quick
@given(histories() | broken_histories())
@in_event_loop
async def test_undo_turn_removes_everything_from_the_newest_user_message_on(items: list[Item]) -> None:
    session = await session_of(items)
    users = [n for n, item in enumerate(items) if item.get("role") == "user"]
    removed = await undo_turn(session)
    left = await session.get_items()
    assert len(left) + len(removed) == len(items)
    assert sum(item.get("role") == "user" for item in removed) == min(len(users), 1)
    newest = items[users[-1] :] if users else []
    assert removed[len(removed) - len(newest) :] == newest


# --- reset ---


@in_event_loop
async def test_reset_gives_an_initial_context() -> None:
    session = await session_of([message(n) for n in range(5)])
    await reset_session(session, [system("be kind"), message("hi")])
    assert texts(await session.get_items()) == ["be kind", "hi"]
    await reset_session(session)
    assert await session.get_items() == []


@in_event_loop
async def test_reset_to_what_cannot_be_stored_changes_nothing() -> None:
    for session in (InMemorySession("s"), SQLiteSession("s")):
        await session.add_items([message("kept")])
        with pytest.raises(TypeError, match="item 1"):
            await reset_session(session, [message("good"), "bad"])
        assert texts(await session.get_items()) == ["kept"]
        await session.aclose()


# --- others who write at the same time ---


@in_event_loop
async def test_undo_loses_nothing_that_is_added_meanwhile(tmp_path: Path) -> None:
    async with SQLiteSession("s", tmp_path / "s.db") as session:
        adding = [session.add_items([message(n), message(n + 100)]) for n in range(20)]
        undoing = [undo_items(session) for _ in range(20)]
        calls: list[Any] = [call for pair in zip(adding, undoing, strict=True) for call in pair]
        removed = [item for undone in (await asyncio.gather(*calls))[1::2] for item in undone]
        found = texts([*removed, *await session.get_items()])
        assert sorted(map(int, found)) == [*range(20), *range(100, 120)]


@in_event_loop
async def test_compress_loses_nothing_that_is_added_meanwhile(tmp_path: Path) -> None:
    async with SQLiteSession("s", tmp_path / "s.db") as session:
        await session.get_items()  # the file is open: from now on, calls are taken in the order they are made
        adding = [session.add_items([message(n)]) for n in range(30)]
        compressing = [compress_history(session, 4) for _ in range(30)]
        calls: list[Any] = [call for pair in zip(adding, compressing, strict=True) for call in pair]
        counts = (await asyncio.gather(*calls))[1::2]
        left = texts(await session.get_items())
        assert left == [str(n) for n in range(30 - len(left), 30)], "the newest, in order"
        assert len(left) >= 4
        assert sum(before - after for before, after in counts) + len(left) == 30


# --- one bad item ---


NOT_OURS = {
    "NaN": '{"role": "user", "content": "b", "score": NaN}',
    "depth": '{"role": "user", "content": ' + "[" * 250 + "]" * 250 + "}",
}


@pytest.mark.parametrize("stored", NOT_OURS)
@pytest.mark.parametrize(
    "change", [compress_history, undo_items, undo_turn, reset_session], ids=lambda change: change.__name__
)
@in_event_loop
async def test_what_others_stored_does_not_poison_a_session(
    tmp_path: Path, change: Callable[[Any], Awaitable[Any]], stored: str
) -> None:
    """The Agents SDK writes with the standard library, which lets NaN and any depth through."""
    path = tmp_path / "s.db"
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
        insert = "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', ?)"
        run_sql(path, insert, NOT_OURS[stored])
        assert len(await session.get_items()) == 2
        await change(session)
        await session.add_items([message("goes on")])
        assert (await session.get_items())[-1] == message("goes on")
