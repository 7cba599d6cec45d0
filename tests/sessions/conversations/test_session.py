"""A session in a conversation: its id, its client, its settings, reading and writing."""

import asyncio
import gc
import subprocess
import sys
from typing import Any

import agents
import agents.memory
import openai
import pytest

import recollect
from recollect import Item, SessionClosedError, SessionSettings
from recollect.sessions.conversations import (
    ConversationNotCreatedError,
    OpenAIConversationsSession,
    start_openai_conversations_session,
)
from recollect.testing.contract import in_event_loop, message
from recollect.testing.providers import ProviderServer

ITEMS = "POST /v1/conversations/*/items"


def said(items: list[Item]) -> list[str]:
    return [item["content"][0]["text"] for item in items]


# --- its id ---


@in_event_loop
async def test_the_conversation_is_created_by_the_first_call_that_needs_it(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    uses: list[Any] = [
        lambda session: session.get_items(),
        lambda session: session.get_items(limit=0),
        lambda session: session.pop_item(),
        lambda session: session.add_items([message("hi")]),
    ]
    for use in uses:
        server.reset()
        session = OpenAIConversationsSession(openai_client=client)
        await session.clear_session()
        await session.add_items([])
        assert server.requests() == []
        await use(session)
        await use(session)
        assert server.conversations.ids() == [session.session_id]
        assert len(server.requests("POST /v1/conversations")) == 1


@in_event_loop
async def test_the_sdks_way_to_ask_for_the_id_creates_the_conversation(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    server.reset()
    session = OpenAIConversationsSession(openai_client=client)
    made = await session._get_session_id()
    assert made == session.session_id == await session._get_session_id()
    assert server.conversations.ids() == [made]
    session.close()
    with pytest.raises(SessionClosedError):
        await session._get_session_id()


@in_event_loop
async def test_there_is_no_id_before_the_conversation_is_created(client: openai.AsyncOpenAI) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    with pytest.raises(ConversationNotCreatedError, match="created by the first call"):
        _ = session.session_id
    with pytest.raises(ValueError, match="not known yet"):  # as the SDK's class has it
        _ = session.session_id
    session.session_id = "conv_mine"
    assert session.session_id == "conv_mine"


@in_event_loop
async def test_it_is_a_session_with_and_without_an_id(client: openai.AsyncOpenAI) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    kinds: tuple[Any, ...] = (
        recollect.Session,
        recollect.SessionABC,
        agents.memory.Session,
        agents.memory.SessionABC,
        agents.OpenAIConversationsSession,
    )
    assert [isinstance(session, kind) for kind in kinds] == [True] * 5
    await session.get_items()
    assert [isinstance(session, kind) for kind in kinds] == [True] * 5
    assert issubclass(OpenAIConversationsSession, agents.OpenAIConversationsSession)
    assert not isinstance(object(), (recollect.Session, agents.memory.Session))


@in_event_loop
async def test_another_id_leads_to_another_conversation(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    one = await start_openai_conversations_session(client)
    other = await start_openai_conversations_session(client)
    assert server.conversations.ids() == [one, other]
    session = OpenAIConversationsSession(conversation_id=one, openai_client=client)
    await session.add_items([message("to one")])
    session.session_id = other
    await session.add_items([message("to other")])
    assert said(server.conversations.items_of(one)) == ["to one"]
    assert said(await session.get_items()) == ["to other"]


@in_event_loop
async def test_clearing_deletes_the_conversation_and_forgets_its_id(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    await session.add_items([message("old")])
    old = session.session_id
    await session.clear_session()
    assert server.conversations.ids() == []
    with pytest.raises(ConversationNotCreatedError):
        _ = session.session_id
    await session.add_items([message("new")])
    assert session.session_id != old
    assert said(await session.get_items()) == ["new"]


@pytest.mark.parametrize("bad", ["", 5, "nul \0", "half \ud83d"], ids=repr)
def test_a_bad_id_is_refused(client: openai.AsyncOpenAI, bad: Any) -> None:
    with pytest.raises(ValueError, match="session_id"):
        OpenAIConversationsSession(conversation_id=bad, openai_client=client)


@pytest.mark.parametrize("hostile", ["..", ".", "%2e%2e", "a/b", "../other", "other?x", "other#x"])
@in_event_loop
async def test_a_hostile_id_reaches_no_other_conversation(
    server: ProviderServer, client: openai.AsyncOpenAI, hostile: str
) -> None:
    server.conversations.add("other")
    session = OpenAIConversationsSession(conversation_id=hostile, openai_client=client)
    for use in (session.get_items, session.pop_item, lambda: session.add_items([message("x")])):
        with pytest.raises((openai.NotFoundError, ValueError)):
            await use()
    assert server.conversations.items_of("other") == []


# --- its client ---


@in_event_loop
async def test_a_client_that_was_given_is_not_closed(client: openai.AsyncOpenAI) -> None:
    async with OpenAIConversationsSession(openai_client=client) as session:
        await session.get_items()
    assert not client.is_closed()
    again = OpenAIConversationsSession(conversation_id=session.session_id, openai_client=client)
    assert await again.get_items() == []
    again.close()
    assert not client.is_closed()


@pytest.fixture
def environment(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment that an unconfigured client reads."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", server.api_key)


async def disconnected(server: ProviderServer) -> None:
    while server.open_connections:  # noqa: ASYNC110 - the server is of another thread
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("close", ["close", "aclose", "async with"])
@pytest.mark.usefixtures("environment")
@in_event_loop
async def test_a_client_that_was_made_here_is_closed_with_the_session(
    server: ProviderServer, close: str
) -> None:
    await disconnected(server)
    session = OpenAIConversationsSession()
    await session.add_items([message("hi")])
    assert server.open_connections == 1
    if close == "close":
        session.close()
        session.close()
    elif close == "aclose":
        await session.aclose()
        await session.aclose()
    else:
        async with session:
            pass
    await disconnected(server)
    with pytest.raises(SessionClosedError, match=session.session_id):
        await session.get_items()


@pytest.mark.usefixtures("environment")
@in_event_loop
async def test_a_session_that_nobody_closed_leaves_no_connection_behind(server: ProviderServer) -> None:
    session = OpenAIConversationsSession()
    await session.get_items()
    del session
    gc.collect()
    await disconnected(server)


@pytest.mark.usefixtures("environment")
def test_connections_end_with_their_event_loop(server: ProviderServer) -> None:
    session = OpenAIConversationsSession()
    for _ in range(2):
        asyncio.run(session.get_items())
        asyncio.run(disconnected(server))
    session.close()


@pytest.mark.usefixtures("environment")
@in_event_loop
async def test_a_conversation_can_be_started_without_a_client(server: ProviderServer) -> None:
    assert [await start_openai_conversations_session()] == server.conversations.ids()
    await disconnected(server)


@in_event_loop
async def test_a_session_that_was_closed_before_its_conversation_was_created(
    client: openai.AsyncOpenAI,
) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    session.close()
    with pytest.raises(SessionClosedError, match="not yet created"):
        await session.get_items()


@in_event_loop
async def test_the_default_client_of_the_sdk_is_taken(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    agents.set_default_openai_client(client, use_for_tracing=False)
    try:
        async with OpenAIConversationsSession() as session:
            await session.get_items()
    finally:
        agents.set_default_openai_client(None, use_for_tracing=False)  # type: ignore[arg-type]
    assert server.conversations.ids() == [session.session_id]
    assert not client.is_closed()


@in_event_loop
async def test_a_client_with_connections_of_its_own_is_used_as_it_is(server: ProviderServer) -> None:
    async with (
        openai.DefaultAsyncHttpxClient(headers={"x-through": "a proxy"}) as http_client,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="test-key", http_client=http_client) as client,
    ):
        await OpenAIConversationsSession(openai_client=client).add_items([message("hi")])
    assert {request.headers["x-through"] for request in server.requests()} == {"a proxy"}


def test_without_a_key_the_error_is_that_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(openai.OpenAIError, match="OPENAI_API_KEY"):
        OpenAIConversationsSession()


# --- without the extras ---


def ended(script: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_it_works_without_the_agents_sdk(server: ProviderServer) -> None:
    script = f"""
import asyncio, sys
sys.modules["agents"] = None  # Python then treats it as not installed
from openai import AsyncOpenAI
from recollect import Session
from recollect.sessions.conversations import OpenAIConversationsSession, start_openai_conversations_session

async def main():
    async with AsyncOpenAI(base_url={server.base_url!r}, api_key="test-key") as client:
        session = OpenAIConversationsSession(openai_client=client)
        assert isinstance(session, Session)
        await session.add_items([{{"role": "user", "content": "hi"}}])
        assert isinstance(session, Session)
        assert len(await session.get_items()) == 1
        assert (await start_openai_conversations_session(client)).startswith("conv_")

asyncio.run(main())
"""
    done = ended(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(server.conversations.ids()) == 2


def test_a_missing_client_library_is_named() -> None:
    script = """
import sys
sys.modules["agents"] = sys.modules["openai"] = None
from recollect.sessions.conversations import OpenAIConversationsSession
OpenAIConversationsSession()
"""
    assert "OpenAIConversationsSession needs the extra 'openai': pip install 'recollect-memory[openai]'" in (
        ended(script).stderr
    )


# --- reading ---


async def filled(client: openai.AsyncOpenAI, count: int) -> OpenAIConversationsSession:
    session = OpenAIConversationsSession(openai_client=client)
    await session.add_items([message(n) for n in range(count)])
    return session


@pytest.mark.parametrize(
    ("limit", "widths"),
    [
        (None, [100, 100, 100]),
        (1, [1]),
        (99, [99]),
        (100, [100]),
        (101, [100, 1]),
        (250, [100, 100, 50]),
        (251, [100, 100, 51]),
        (1000, [100, 100, 100]),
        (0, []),
    ],
)
@in_event_loop
async def test_long_histories_are_read_in_no_more_pages_than_needed(
    server: ProviderServer, client: openai.AsyncOpenAI, limit: int | None, widths: list[int]
) -> None:
    session = await filled(client, 250)
    expected = [str(n) for n in range(250)]
    found = said(await session.get_items(limit))
    assert found == (expected if limit is None else expected[len(expected) - min(limit, 250) :])
    reads = server.requests("GET /v1/conversations/*/items")
    assert [int(request.query["limit"]) for request in reads] == widths
    assert {request.query["order"] for request in reads} <= {"asc" if limit is None else "desc"}


@pytest.mark.parametrize("count", [100, 200])
@in_event_loop
async def test_a_full_last_page_is_known_to_be_the_last(
    server: ProviderServer, client: openai.AsyncOpenAI, count: int
) -> None:
    session = await filled(client, count)
    assert len(await session.get_items()) == count
    assert len(server.requests("GET **")) == count // 100


@pytest.mark.parametrize(
    "settings", [SessionSettings(limit=3), agents.SessionSettings(limit=3), {"limit": 3}]
)
@in_event_loop
async def test_settings_give_a_limit(client: openai.AsyncOpenAI, settings: Any) -> None:
    session = OpenAIConversationsSession(openai_client=client, session_settings=settings)
    await session.add_items([message(n) for n in range(5)])
    assert said(await session.get_items()) == ["2", "3", "4"]
    with pytest.raises(ValueError, match="negative"):
        OpenAIConversationsSession(openai_client=client, session_settings={"limit": -1})


RICH: list[Item] = [
    {"role": "developer", "content": "be brief"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "what is this?"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "low"},
            {"type": "input_file", "file_id": "file_1"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "dots"},
    },
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "é"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "a dot"},
    {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}", "status": "incomplete"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
    {"type": "custom_tool_call", "call_id": "c3", "name": "draw", "input": "."},
    {"type": "custom_tool_call_output", "call_id": "c3", "output": "done"},
    {"type": "mcp_call", "id": "mcp_1", "name": "f", "arguments": "{}", "server_label": "s", "error": None},
    {"type": "compaction", "encrypted_content": "gAAA"},
    {"role": "assistant", "content": "a dot", "phase": "final_answer"},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
]


@pytest.mark.parametrize("limit", [None, 1, 7, 100])
@in_event_loop
async def test_items_are_those_that_the_sdks_class_gives(
    server: ProviderServer, client: openai.AsyncOpenAI, limit: int | None
) -> None:
    ours = OpenAIConversationsSession(openai_client=client)
    await ours.add_items(RICH)
    assert len(server.requests(ITEMS)) == 1
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="test-key") as their_client:
        theirs = agents.OpenAIConversationsSession(
            conversation_id=ours.session_id, openai_client=their_client
        )
        found = await ours.get_items(limit)
        assert found == await theirs.get_items(limit)
        assert all(type(item) is dict for item in found)
        if limit == 1:
            assert await ours.pop_item() == found[0]
            assert await theirs.pop_item() != found[0]


# --- writing ---


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, [1]), (20, [20]), (21, [20, 1]), (45, [20, 20, 5]), (60, [20, 20, 20])]
)
@in_event_loop
async def test_large_batches_are_split_in_order(
    server: ProviderServer, client: openai.AsyncOpenAI, count: int, sizes: list[int]
) -> None:
    session = await filled(client, count)
    assert [len(request.body["items"]) for request in server.requests(ITEMS)] == sizes
    assert said(server.conversations.items_of(session.session_id)) == [str(n) for n in range(count)]


@pytest.mark.parametrize(
    "bad", ["text", None, {"content": float("nan")}, {"content": "half \ud83d"}], ids=repr
)
@in_event_loop
async def test_what_cannot_be_sent_is_refused_before_anything_is(
    server: ProviderServer, client: openai.AsyncOpenAI, bad: Any
) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    with pytest.raises(recollect.InvalidItemError, match="item 30 ") as caught:
        await session.add_items([*(message(n) for n in range(30)), bad])
    assert caught.value.index == 30
    assert server.requests() == []


@in_event_loop
async def test_what_was_remembered_for_a_question_is_no_part_of_the_history(
    client: openai.AsyncOpenAI,
) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    remembered = "<remembered-data>\n> - The user lives in Lisbon.\n</remembered-data>"
    tail: Item = {**message(remembered), "role": "developer"}
    quoted = message("<remembered-data> is how it begins")
    await session.add_items([message("one"), tail, message("two"), tail, quoted, tail])
    assert said(await session.get_items()) == ["one", "two", "<remembered-data> is how it begins"]
    assert said(await session.get_items(limit=2)) == ["two", "<remembered-data> is how it begins"]
    popped = await session.pop_item()
    assert popped["content"][0]["text"] == "<remembered-data> is how it begins"
    assert said(await session.get_items()) == ["one", "two"]
