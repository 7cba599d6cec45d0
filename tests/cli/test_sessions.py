"""`recollect sessions`."""

import asyncio
from pathlib import Path

import pytest

from recollect import AdvancedSQLiteSession, SessionMetadata, SQLiteSession
from recollect.cli.sessions import render_items

from .conftest import Run

ITEMS = [
    {"role": "user", "content": "How is the weather?"},
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "get_weather", "arguments": '{"city": "Lisbon"}'},
    {"type": "function_call_output", "call_id": "c", "output": "sunny " * 50},
    {"role": "assistant", "content": "Sunny.\x1b]0;owned\x07\n\u202eOn both lines."},
]


@pytest.fixture(autouse=True)
def stored(folder: Path) -> None:
    async def store() -> None:
        for name, user in (("weather", "ada"), ("other\x1b[2J", "bob")):
            async with SQLiteSession(name, folder / "recollect.db") as session:
                await session.add_items(ITEMS)
                await session.set_metadata(SessionMetadata(user_id=user, title=f"of {user}"))

    asyncio.run(store())


def test_sessions_are_listed_and_filtered(run: Run) -> None:
    listed = run("sessions", "list")
    assert listed.code == 0
    assert "\x1b" not in listed.out
    head, *rows = [line.split()[0] for line in listed.out.splitlines()]
    assert (head, set(rows)) == ("SESSION", {"other\\x1b[2J", "weather"})
    told = run("sessions", "list", "--user", "ada", "--json").json
    assert [(each["session_id"], each["item_count"], each["title"]) for each in told] == [
        ("weather", 5, "of ada")
    ]


def test_a_limit_says_that_there_are_more(run: Run) -> None:
    listed = run("sessions", "list", "--limit", "1")
    assert len(listed.out.splitlines()) == 2
    assert "use --limit for more" in listed.told


def test_a_session_is_shown_with_tool_calls_folded_and_nothing_that_acts(run: Run) -> None:
    shown = run("sessions", "show", "weather")
    lines = shown.out.splitlines()
    assert lines[:3] == ["weather: 5 items", "user", "    How is the weather?"]
    assert lines[3].startswith('    ⚙ get_weather({"city": "Lisbon"}) → sunny sunny')
    assert lines[3].endswith("…")
    assert lines[4:] == ["assistant", "    Sunny.\\x1b]0;owned\\x07", "    \\u202eOn both lines."]


def test_tool_calls_can_be_unfolded(run: Run) -> None:
    shown = run("sessions", "show", "weather", "--unfold", "--all").out
    assert ("sunny " * 50).strip() in shown
    assert "[reasoning]" in shown


def test_the_newest_items_are_shown_and_it_is_said_that_there_are_more(run: Run) -> None:
    shown = run("sessions", "show", "weather", "--limit", "1")
    assert shown.out.splitlines()[:2] == ["weather: 1 item", "assistant"]
    assert "use --all for all" in shown.told


def test_items_come_as_they_are_for_programs(run: Run) -> None:
    assert run("sessions", "show", "weather", "--json").json == {
        "session_id": "weather",
        "item_count": 5,
        "items": ITEMS,
    }


def test_a_branch_is_shown(run: Run, folder: Path) -> None:
    async def branch() -> None:
        session = AdvancedSQLiteSession(
            session_id="tree", db_path=folder / "recollect.db", create_tables=True
        )
        async with session:
            await session.add_items([{"role": "user", "content": text} for text in ("one", "two")])
            await session.create_branch_from_turn(2, "retry")
            await session.add_items([{"role": "user", "content": "three"}])

    asyncio.run(branch())
    told = run("sessions", "show", "tree", "--branch", "retry", "--json").json
    assert [item["content"] for item in told["items"]] == ["one", "three"]


def test_a_session_that_is_not_there_is_not_found(run: Run) -> None:
    for arguments in (("show", "nobody's"), ("delete", "nobody's", "--yes")):
        ended = run("sessions", *arguments)
        assert (ended.code, ended.out) == (3, "")
        assert "no session with this id" in ended.told


def test_deleting_needs_a_yes_where_nobody_can_be_asked(run: Run) -> None:
    refused = run("sessions", "delete", "weather")
    assert (refused.code, "pass --yes" in refused.told) == (2, True)
    deleted = run("sessions", "delete", "weather", "--yes", "--json")
    assert deleted.json == {"session_id": "weather", "deleted": True}
    assert run("sessions", "show", "weather").code == 3
    assert run("sessions", "show", "other\x1b[2J").code == 0


def test_a_database_that_is_not_there_is_not_made(run: Run, folder: Path) -> None:
    ended = run("sessions", "list", "--url", "typo.db")
    assert (ended.code, ended.out) == (3, "")
    assert "no database at typo.db" in ended.told
    assert not (folder / "typo.db").exists()


def test_what_is_unknown_is_told_by_its_type() -> None:
    lines = render_items(
        [
            {"type": "some_new_thing\x1b", "x": 1},
            {"type": "function_call_output", "call_id": "z", "output": "lost"},
        ]
    )
    assert lines == ["    [some_new_thing\\x1b]", "    [tool output without its call: lost]"]
