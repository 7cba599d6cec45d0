"""The real clients of others drive the service: `openai` as a plain client, `openai-agents` by its tools."""

import asyncio
from typing import Any

import httpx2
import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI, AuthenticationError, BadRequestError, NotFoundError, OpenAI, Stream

from recollect.testing.providers import ProviderServer, RecordedRequest, Reply, ToolCall

from .places import COMPLETIONS, TALKER, Place
from .waiting import wait_until


def client_of(place: Place, key: str | None = None) -> OpenAI:
    return OpenAI(base_url=f"{place.url}/v1", api_key=key or place.key(), max_retries=0)


def asked(user: str, text: str, **more: Any) -> dict[str, Any]:
    return {"user_id": user, "message": text, "agent": TALKER, **more}


def test_the_openai_client_chats(place: Place, server: ProviderServer, user: str) -> None:
    server.chat.reply("In Lisbon.", "As I said.")
    with client_of(place) as client:
        first: Any = client.post("/chat", cast_to=object, body=asked(user, "Where do I live?"))
        more = asked(user, "Where?", conversation_id=first["conversation_id"])
        second: Any = client.post("/chat", cast_to=object, body=more)
        kept: Any = client.get(f"/conversations/{first['conversation_id']}/messages", cast_to=object)
    assert (first["text"], second["text"]) == ("In Lisbon.", "As I said.")
    assert [each["content"] for each in kept["items"]] == [
        *("Where do I live?", "In Lisbon."),
        *("Where?", "As I said."),
    ]
    seen = server.requests(COMPLETIONS)[-1].body["messages"]
    assert [each["content"] for each in seen if each["role"] != "system"] == [
        *("Where do I live?", "In Lisbon."),
        "Where?",
    ]


def test_its_own_decoder_reads_our_streams(place: Place, server: ProviderServer, user: str) -> None:
    text = "You live in Lisbon — リスボン\n\ndata: as you said 🎉\r\n: yes."
    server.chat.reply(Reply(text, piece=3))
    with client_of(place) as client:
        stream = client.post(
            "/chat/stream",
            cast_to=object,
            body=asked(user, "Where do I live?"),
            stream=True,
            stream_cls=Stream[object],
        )
        events: list[Any] = list(stream)
    started, *deltas, completed = events
    assert started["turn_id"] == completed["turn_id"]
    assert [set(delta) for delta in deltas] == [{"text"}] * len(deltas)
    assert len(deltas) == -(-len(text) // 3)
    assert "".join(delta["text"] for delta in deltas) == completed["text"] == text
    assert completed["usage"]["total_tokens"] > 0


def test_its_errors_are_the_ones_that_its_users_know(place: Place) -> None:
    wrong = place.key()[:-1] + "x"
    with client_of(place, wrong) as client, pytest.raises(AuthenticationError):
        client.get("/whoami", cast_to=object)
    with client_of(place) as client:
        with pytest.raises(NotFoundError) as missing:
            client.get("/conversations/nowhere", cast_to=object)
        assert missing.value.body["code"] == "not_found"  # type: ignore[index]
        with pytest.raises(BadRequestError):
            client.post("/chat", cast_to=object, content=b"{", options={"headers": {"X": "y"}})


def test_an_agent_remembers_by_tools_that_call_the_service(
    place: Place, server: ProviderServer, user: str
) -> None:
    """One model is behind both: the agent asks it, and so does the service when the agent asks that."""
    asyncio.run(_agent_remembers(place, place.key("write"), server, user))


async def _agent_remembers(place: Place, key: str, server: ProviderServer, user: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(base_url=place.url, headers=headers, timeout=60) as service,
        AsyncOpenAI(base_url=server.base_url, api_key=server.api_key, max_retries=0) as models,
    ):
        agent = _agent(service, models, user)
        server.chat.reply(ToolCall("record", {"text": "I live in Lisbon."}), "Noted.")
        assert await _run(agent, "I live in Lisbon.") == "Noted."
        await asyncio.to_thread(wait_until, lambda: _is_learned(place, key, user))
        server.chat.reply(
            ToolCall("search", {"query": "Where does the user live?"}),
            ToolCall("ask", {"question": "Where do I live?"}),
            lambda request: Reply("The service asked for: " + request.body["messages"][-1]["content"]),
            _answer_from_tools,
        )
        assert await _run(agent, "Where do I live?") == "found Lisbon, and was told Where do I live?"
    assert server.chat.replies_left == 0


def _answer_from_tools(request: RecordedRequest) -> str:
    outputs = [each["content"] for each in request.body["messages"] if each["role"] == "tool"]
    assert "Lisbon" in outputs[0], outputs
    return f"found Lisbon, and was told {outputs[1].removeprefix('The service asked for: ')}"


def _is_learned(place: Place, key: str, user: str) -> bool:
    with place.client(key) as client:
        body = {"query": "Lisbon", "agent_id": TALKER, "user_id": user}
        return bool(client.post("/v1/memories/search", json=body).json()["items"])


def _agent(service: httpx2.AsyncClient, models: AsyncOpenAI, user: str) -> Agent[Any]:
    async def post(path: str, body: dict[str, Any]) -> Any:
        answer = await service.post(path, json={"user_id": user, **body})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    @function_tool
    async def record(text: str) -> str:
        """Keep what the user says."""
        messages = [{"role": "user", "content": text}]
        made = await post("/v1/conversations", {"agent_id": TALKER, "messages": messages})
        return str(made["conversation_id"])

    @function_tool
    async def search(query: str) -> str:
        """Find what is known about the user."""
        found = await post("/v1/memories/search", {"agent_id": TALKER, "query": query})
        return " ".join(str(hit) for hit in found["items"])

    @function_tool
    async def ask(question: str) -> str:
        """Ask an agent of the service."""
        return str((await post("/v1/chat", {"agent": TALKER, "message": question}))["text"])

    model = OpenAIChatCompletionsModel("gpt-test", models)
    return Agent(name="desk", model=model, tools=[record, search, ask])


async def _run(agent: Agent[Any], text: str) -> str:
    result = await Runner.run(agent, text, run_config=RunConfig(tracing_disabled=True))
    return str(result.final_output)
