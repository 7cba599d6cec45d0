"""Branches, turns and tools through encryption: they tell what they tell of a history that is plain."""

from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message
from hypothesis import given

from histories import CALL_KINDS, call_and_output, quick
from histories import histories as any_history
from recollect import AdvancedSQLAlchemySession, AdvancedSQLiteSession, BranchDiff
from recollect.errors import WrongKeyError
from recollect.testing.contract import in_event_loop, message, texts

from ..postgres.database import by, new_tables
from .tools import CIPHERS, Item, age_of, encrypted, envelope

STRUCTURE = {"type", "role", "name", "namespace", "server_label"}
ENVELOPE = {"__enc__", "v", "kid", "payload"}


def answer(text: str) -> Item:
    return {"role": "assistant", "content": text, "type": "message", "id": "msg_1", "name": "not a tool"}


HISTORY: list[Item] = [
    {"role": "system", "content": "be brief"},
    message("Where is my ORDER?"),
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": "{}", "namespace": "shop"},
    {"type": "function_call_output", "call_id": "c1", "output": "in transit"},
    answer("on its way"),
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "你好, and my parcel?"}]},
    {"type": "mcp_call", "id": "m1", "name": "ask", "server_label": "post", "arguments": "x", "output": "42"},
    {"type": "web_search_call", "id": "w1", "action": {"query": "secret"}},
    *(item for kind in CALL_KINDS for item in call_and_output(kind, f"call_{kind}", "words")),
    message("thanks"),
    answer("you are welcome"),
]
UNKNOWN = {"type": "from_the_future", "name": "not to be seen", "role": 7, "content": "x"}


@pytest.fixture(params=["file", "postgres"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Opens advanced sessions of any id, in one database."""
    if request.param == "file":
        return lambda session_id="s": AdvancedSQLiteSession(session_id=session_id, db_path=tmp_path / "s.db")
    url, tables = by("asyncpg", request.getfixturevalue("postgres_url")), new_tables()
    return lambda session_id="s": AdvancedSQLAlchemySession.from_url(
        session_id, url=url, create_tables=True, **tables
    )


def without_times(answers: Any) -> Any:
    return [{**each, "timestamp": None, "created_at": None} for each in answers]


async def everything_told_by(session: Any) -> list[Any]:
    """All answers of an advanced session, in one."""
    return [
        await session.get_items(),
        await session.get_items(3),
        await session.get_items(branch_id="main"),
        await session.get_items(branch_id="main", at_turn=1),
        await session.get_conversation_by_turns(),
        await session.get_tool_usage(),
        [(turn.turn, turn.item) for turn in await session.read_turns()],
        without_times(await session.get_conversation_turns()),
        without_times(await session.find_turns_by_content("order")),
        without_times(await session.find_turns_by_content("你好", branch_id="main")),
        without_times(await session.find_turns_by_content("nobody said this")),
        without_times(await session.list_branches()),
        await session.current_branch(),
        await session.diff_branches("main"),
    ]


@pytest.mark.parametrize("cipher", CIPHERS)
@in_event_loop
async def test_an_encrypted_history_tells_what_a_plain_one_tells(opening: Any, cipher: Any) -> None:
    async with opening("plain") as plain, encrypted(opening("s"), cipher=cipher) as session:
        for each in (plain, session):
            await each.add_items(HISTORY)
        assert await everything_told_by(session) == await everything_told_by(plain)
        for each in (plain, session):
            assert await each.create_branch_from_content("parcel", "other") == "other"
            await each.add_items([message("another order"), answer("yes")])
            await each.pop_item()
        assert await everything_told_by(session) == await everything_told_by(plain)
        for each in (plain, session):
            await each.switch_to_branch("main")
            await each.transform_items(lambda items: items[:-2])
            assert await each.create_branch_from_turn(1, "empty") == "empty"
        assert await everything_told_by(session) == await everything_told_by(plain)
        for each in (plain, session):
            await each.delete_branch("empty", force=True)
        assert await everything_told_by(session) == await everything_told_by(plain)


@in_event_loop
async def test_envelopes_show_the_structure_and_never_contents(opening: Any) -> None:
    async with encrypted(opening()) as session:
        await session.add_items([*HISTORY, UNKNOWN])
        stored = await session.underlying_session.get_items()
        for envelope_, item in zip(stored, [*HISTORY, UNKNOWN], strict=True):
            shown = {field: value for field, value in envelope_.items() if field not in ENVELOPE}
            assert shown.keys() <= STRUCTURE
            assert all(item[field] == value for field, value in shown.items())
        assert [each.get("role") for each in stored[:2]] == ["system", "user"]
        assert (stored[3]["name"], stored[3]["namespace"]) == ("look_up", "shop")
        assert stored[7]["server_label"] == "post"
        assert "name" not in stored[5], "a message has no tool"
        assert stored[-1].keys() - ENVELOPE == {"type"}, "nor has what nobody knows"


@in_event_loop
async def test_structure_can_be_hidden(opening: Any) -> None:
    async with encrypted(opening(), hide_structure=True) as session:
        await session.add_items(HISTORY)
        assert all(stored.keys() == ENVELOPE for stored in await session.underlying_session.get_items())
        assert await session.get_items() == HISTORY
        told = await session.get_conversation_by_turns()
        assert told == {0: [{"type": "other", "tool_name": None}] * len(HISTORY)}
        assert await session.get_tool_usage() == []
        assert await session.get_conversation_turns() == []
        with pytest.raises(ValueError, match="no user turn"):
            await session.create_branch_from_turn(1)


@in_event_loop
async def test_the_structure_in_an_envelope_is_no_part_of_the_item(opening: Any) -> None:
    """Whoever changes it in the database changes no history."""
    async with encrypted(opening()) as session:
        await session.add_items([message("a")])
        await session.underlying_session.revise_items(  # type: ignore[attr-defined]
            lambda stored: [{**each, "role": "system", "type": "nonsense"} for each in stored]
        )
        assert await session.get_items() == [message("a")]


@in_event_loop
async def test_rotation_and_purging_reach_every_branch(opening: Any) -> None:
    async with opening() as inner:
        old = encrypted(inner, "old")
        await old.add_items([message("a"), answer("b"), message("c")])
        await old.create_branch_from_turn(2, "other")
        await old.add_items([message("d")])
        await inner.add_items([{**envelope(message("e"), 1000, key="old"), "role": "user"}])
        assert await encrypted(inner, ["new", "old"]).rotate() == 5
        session = encrypted(inner, "new", ttl=600)
        assert texts(await session.get_items()) == ["a", "b", "d"]
        assert texts(await session.get_items(branch_id="main")) == ["a", "b", "c"]
        assert age_of((await inner.get_items())[-1], "new") >= 1000
        await session.switch_to_branch("main")
        assert await session.purge_expired() == 1, "of a branch that is not current"
        assert texts(await encrypted(inner, "new").get_items(branch_id="other")) == ["a", "b", "d"]
        assert texts([turn.item for turn in await session.read_turns("other")]) == ["a", "d"]
        assert await session.rotate() == 0


@in_event_loop
async def test_what_has_expired_is_not_found(opening: Any) -> None:
    async with opening() as inner:
        await inner.add_items([{**envelope(message("old order"), 1000), "role": "user"}])
        session = encrypted(inner, ttl=600)
        await session.add_items([message("new order")])
        assert [turn["turn"] for turn in await session.get_conversation_turns()] == [2]
        assert [turn["turn"] for turn in await session.find_turns_by_content("order")] == [2]
        assert await session.create_branch_from_content("order", "other") == "other"
        diff = await session.diff_branches("main")
        assert isinstance(diff, BranchDiff)
        assert (texts(diff.only_in_first), diff.only_in_second, diff.common_items) == (["new order"], [], 1)


@in_event_loop
async def test_a_wrong_key_finds_nothing_silently(opening: Any) -> None:
    async with opening() as inner:
        await encrypted(inner).add_items([message("a"), answer("b"), message("c")])
        wrong = encrypted(inner, "wrong")
        for use in (
            wrong.read_turns,
            wrong.get_conversation_turns,
            lambda: wrong.find_turns_by_content("a"),
            lambda: wrong.create_branch_from_content("a"),
            lambda: wrong.get_items(branch_id="main"),
            lambda: wrong.get_items(at_turn=1),
        ):
            with pytest.raises(WrongKeyError):
                await use()
        for bad in (None, 7):
            with pytest.raises(ValueError, match="text to find"):
                await wrong.find_turns_by_content(bad)
        assert [branch["branch_id"] for branch in await wrong.list_branches()] == ["main"]
        with pytest.raises(ValueError, match="no user turn contains that text"):
            await encrypted(inner).create_branch_from_content("nobody said this")


@in_event_loop
async def test_a_branch_is_cleared_and_a_session_with_all_its_branches(opening: Any) -> None:
    async with encrypted(opening()) as session:
        await session.add_items([message("a"), message("b")])
        await session.create_branch_from_turn(2)
        await session.clear_branch()
        assert await session.get_items() == []
        assert texts(await session.get_items(branch_id="main")) == ["a", "b"]
        await session.clear_session()
        assert await session.get_items(branch_id="main") == []


@in_event_loop
async def test_usage_is_stored_and_told(opening: Any) -> None:
    async with encrypted(opening()) as session:
        model = ScriptedModel([[assistant_message("hello")]])
        agent = Agent(name="assistant", model=model)
        result = await Runner.run(agent, "hi", session=session, run_config=RunConfig(tracing_disabled=True))
        await session.store_run_usage(result)
        usage = await session.get_session_usage()
        assert usage is not None
        assert usage["requests"] == result.context_wrapper.usage.requests == 1
        assert (await session.get_turn_usage(1))["requests"] == 1
        assert [turn["content"] for turn in await session.get_conversation_turns()] == ["hi"]


@quick
@given(any_history())
def test_any_history_has_the_same_turns_and_tools(history: list[Item]) -> None:
    @in_event_loop
    async def compare() -> None:
        plain = AdvancedSQLiteSession(session_id="s")
        async with plain, encrypted(AdvancedSQLiteSession(session_id="s")) as session:
            for each in (plain, session):
                await each.add_items(history)
            assert await session.get_items() == history
            assert await session.get_conversation_by_turns() == await plain.get_conversation_by_turns()
            assert await session.get_tool_usage() == await plain.get_tool_usage()
            turns = [without_times(await each.get_conversation_turns()) for each in (plain, session)]
            assert turns[0] == turns[1]

    compare()
