"""A run on our session equals one on the SDK's class of that name, which the Runner treats specially."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from typing import Any

import agents
import httpx2
import openai
import pytest
from agents.run_internal.session_persistence import rewind_session_items

from recollect.sessions.conversations import OpenAIConversationsSession
from recollect.testing.contract import in_event_loop, message
from recollect.testing.providers import ProviderServer, Refuse

from ...agents_sdk.scenarios import (
    RUNS,
    SCENARIOS,
    Record,
    Scenario,
    answer,
    call,
    in_short,
    play,
    thought,
)
from ...providers.clients import ssl_context

ADD = "POST /v1/conversations/*/items"
GIVEN_ID = re.compile(r"(?<=_)[0-9a-f]{48}")


@contextmanager
def both_sessions(server: ProviderServer, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Our session and the SDK's. Theirs works in several event loops only if no connection outlives one."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    unkept = openai.DefaultAsyncHttpxClient(limits=limits, verify=ssl_context())
    client = openai.AsyncOpenAI(base_url=server.base_url, api_key="test-key", http_client=unkept)
    yield (
        OpenAIConversationsSession(openai_client=client, **options),
        agents.OpenAIConversationsSession(openai_client=client, **options),
    )
    asyncio.run(client.close())


def without_given_ids(value: Any) -> Any:
    """Without ids of the server, which differ between conversations."""
    if isinstance(value, str):
        return GIVEN_ID.sub("x", value)
    if isinstance(value, dict):
        return {key: without_given_ids(element) for key, element in value.items()}
    return [without_given_ids(element) for element in value] if isinstance(value, list) else value


def seen(record: Record) -> Any:
    return [without_given_ids(part) for part in astuple(record)]


def sent(server: ProviderServer, session: Any) -> Any:
    """All requests about a conversation, without their paging."""
    requests = server.requests(f"* /v1/conversations/{session.session_id}/**")
    return [
        (request.method, request.query.get("order"), without_given_ids(request.body)) for request in requests
    ]


STREAMED = [
    "tools in parallel",
    "thoughts before calls",
    "a hosted tool",
    "a handoff",
    "the model fails after a tool",
    "an input guardrail beside the model",
    "an output guardrail",
    "one of several calls awaits approval",
]


@pytest.mark.parametrize(
    ("scenario", "run_kind"),
    [*((name, "run") for name in SCENARIOS), *((name, "run_streamed") for name in STREAMED)],
)
def test_a_conversation_is_what_it_is_on_the_sdks_session(
    server: ProviderServer, scenario: str, run_kind: str
) -> None:
    story, run_turn = SCENARIOS[scenario], RUNS[run_kind]
    with both_sessions(server) as (ours, theirs):
        found, expected = play(ours, story, run_turn), play(theirs, story, run_turn)
        assert seen(found) == seen(expected)
        assert sent(server, ours) == sent(server, theirs)
    assert in_short(found.stored[-1]) == story.stored
    assert found.ends == [*story.ends, *[""] * (len(story.turns) - len(story.ends))]


def test_a_conversation_run_synchronously(server: ProviderServer) -> None:
    story = SCENARIOS["thoughts before calls"]
    with both_sessions(server) as (ours, theirs):
        found, expected = play(ours, story, RUNS["run_sync"]), play(theirs, story, RUNS["run_sync"])
    assert seen(found) == seen(expected)
    assert in_short(found.stored[-1]) == story.stored


TALK = Scenario(
    ["1+2?", "weather?", "bye"],
    lambda: [
        [thought("add"), call("add", a=1, b=2)],
        answer("3"),
        [call("weather", "p", city="Paris"), call("weather", "r", city="Rome")],
        answer("sunny"),
        answer("bye"),
    ],
    "URCOAUCCOOAUA",
)


@pytest.mark.parametrize("limit", [0, 3, 100])
def test_a_limit_shows_the_model_the_same(server: ProviderServer, limit: int) -> None:
    settings = agents.SessionSettings(limit=limit)
    with both_sessions(server, session_settings=settings) as (ours, theirs):
        found, expected = play(ours, TALK, RUNS["run"]), play(theirs, TALK, RUNS["run"])
        assert seen(found) == seen(expected)
        assert in_short(asyncio.run(ours.get_items(100))) == TALK.stored


def only_what_was_said(history: list[Any], new: list[Any]) -> list[Any]:
    return [item for item in history if item["type"] == "message"] + new


def test_a_callback_is_shown_the_same(server: ProviderServer) -> None:
    with both_sessions(server) as (ours, theirs):
        found, expected = (
            play(session, TALK, RUNS["run"], session_input_callback=only_what_was_said)
            for session in (ours, theirs)
        )
    assert seen(found) == seen(expected)
    assert in_short(found.stored[-1]) == TALK.stored


@pytest.mark.parametrize("policy", ["omit", "preserve"])
def test_ids_of_thoughts_are_kept_whatever_the_policy(server: ProviderServer, policy: Any) -> None:
    with both_sessions(server) as (ours, theirs):
        found, expected = (
            play(session, TALK, RUNS["run"], reasoning_item_id_policy=policy) for session in (ours, theirs)
        )
    assert seen(found) == seen(expected)
    assert [item["id"] for item in found.stored[-1] if item["type"] == "reasoning"] == ["rs_add"]


def test_a_turn_with_many_calls_is_split(server: ProviderServer) -> None:
    calls = [call("add", f"c{n}", a=n, b=n) for n in range(25)]
    story = Scenario(["add!"], lambda: [calls, answer("done")], "U" + "C" * 25 + "O" * 25 + "A")
    with both_sessions(server) as (ours, theirs):
        found, expected = play(ours, story, RUNS["run"]), play(theirs, story, RUNS["run"])
        written, expected_written = (
            [request for request in sent(server, session) if request[0] == "POST"]
            for session in (ours, theirs)
        )
    assert written == expected_written
    assert seen(found) == seen(expected)
    assert in_short(found.stored[-1]) == story.stored


@in_event_loop
async def test_the_runners_rewind_takes_back_the_newest_items(client: openai.AsyncOpenAI) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    await session.add_items([message("kept"), message("mine")])
    (newest,) = await session.get_items(1)
    newest["id"] = "msg_of_another_name"
    await rewind_session_items(session, [newest])
    assert [item["content"][0]["text"] for item in await session.get_items()] == ["kept"]


@in_event_loop
async def test_a_run_tells_of_an_error_of_the_api(
    server: ProviderServer, hasty_client: openai.AsyncOpenAI
) -> None:
    session = OpenAIConversationsSession(openai_client=hasty_client)
    model = agents.testing.ScriptedModel([answer("hello")])
    agent = agents.Agent(name="Desk", model=model)
    config = agents.RunConfig(tracing_disabled=True)
    server.fail_next(ADD, Refuse(429))
    with pytest.raises(openai.RateLimitError):
        await agents.Runner.run(agent, "hi", session=session, run_config=config)
    await agents.Runner.run(agent, "hi", session=session, run_config=config)
    assert in_short(await session.get_items()) == "UA"


def test_the_sdks_compaction_refuses_it_as_it_does_its_own(client: openai.AsyncOpenAI) -> None:
    for kind in (OpenAIConversationsSession, agents.OpenAIConversationsSession):
        with pytest.raises(ValueError, match="cannot wrap"):
            agents.memory.OpenAIResponsesCompactionSession("s", kind(openai_client=client))
