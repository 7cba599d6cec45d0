"""Strands: its file sessions as the oracle, and its agent and session manager with a scripted model."""

import random
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from strands import Agent, tool
from strands.models import Model
from strands.multiagent import Swarm
from strands.session.file_session_manager import FileSessionManager
from strands.session.repository_session_manager import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from recollect import MemoryStore
from recollect.integrations.strands import MemoryHooks, Repository
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop

from .. import prompts

AGENT = "helper"


def message(content: Any, number: int = 0, role: Any = "user") -> SessionMessage:
    blocks = [{"text": content}] if isinstance(content, str) else content
    return SessionMessage({"role": role, "content": blocks}, number)


class Conversation:
    """The messages of an agent, as the session manager creates them: it knows how many there were."""

    def __init__(self, repository: Repository, name: str) -> None:
        self.repository = repository
        self.name = name

    async def add(self, records: Sequence[Any]) -> None:
        for record in records:
            self.repository.create_message(self.name, AGENT, record)

    async def records(self) -> list[Any]:
        try:
            return self.repository.list_messages(self.name, AGENT)
        except SessionException:  # there is no such agent
            return []

    async def aclose(self) -> None:
        await self.repository.aclose()


class TestRepository(AdapterContract):
    batch = 1

    async def open(self, url: str, name: str, **options: Any) -> Conversation:
        options |= {"agent_id": self.agent_id, "create_tables": True}
        return Conversation(Repository(url, **options), name)

    def record(self, text: str) -> Any:
        return message(text)

    def text_of(self, record: Any) -> str:
        return str(record.message["content"][0]["text"])

    def odd_records(self) -> list[Any]:
        call = {
            "toolUse": {"toolUseId": "1", "name": "weather", "input": {"city": "Oslo", "days": [1, None]}}
        }
        result = {"toolResult": {"toolUseId": "1", "status": "success", "content": [{"json": {"t": 1.5}}]}}
        thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
        image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG\x00"}}}
        return [
            *super().odd_records(),
            message([thought, {"text": "a"}, {"text": "b"}, call], role="assistant"),
            message([result]),
            message([image, {"text": "what is this?"}, {"of": {"the": ["future", None]}}]),
            message([]),
        ]


# --- the file sessions of Strands as the oracle ---


def step(repository: Any, chance: random.Random, next_number: dict[str, int]) -> Any:
    """One random call. Messages get the next number, as the session manager gives them."""
    session, agent = chance.choice("ab"), chance.choice("xy")
    kind = chance.choice(
        ["session", "agent", "update agent", *["message"] * 4, "redact", "read", "list", "list", "delete"]
    )
    number, at = chance.randrange(6), f"2026-01-01T00:00:{chance.randrange(60):02}"
    place = f"{session}/{agent}"
    try:
        if kind == "session":
            return repository.create_session(Session(session, SessionType.AGENT, at, at))
        if repository.read_session(session) is None:
            return None  # Strands creates the session first
        if kind in ("agent", "update agent"):
            given = SessionAgent(agent, {"n": number}, {"m": [None]}, {"i": b"\x00"}, at, at)
            (repository.create_agent if kind == "agent" else repository.update_agent)(session, given)
            return repository.read_agent(session, agent)
        if kind == "message" and repository.read_agent(session, agent):
            given = SessionMessage(
                {"role": "user", "content": [{"text": at}]}, next_number.get(place, 0), None, at, at
            )
            next_number[place] = given.message_id + 1
            return repository.create_message(session, agent, given)
        if kind == "redact":
            said = {"role": "user", "content": [{"text": "x"}]}
            return repository.update_message(session, agent, SessionMessage(said, number, said, at, at))
        if kind == "delete" and chance.random() < 0.3:
            repository.delete_session(session)
            for each in [each for each in next_number if each.startswith(session)]:
                del next_number[each]
        if kind == "list":
            limit, offset = chance.choice([None, 2]), chance.randrange(3)
            return repository.list_messages(session, agent, limit, offset)
        return repository.read_session(session), repository.read_message(session, agent, number)
    except SessionException:
        return "SessionException"


def compare(tmp_path: Path, seed: int, steps: int) -> None:
    """Do the same with our repository and with the files of Strands, and compare all answers."""
    oracle = FileSessionManager("other", storage_dir=str(tmp_path / str(seed)))
    repository = Repository(tmp_path / "sessions.db", user_id=str(uuid4()))
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for number in range(steps):
        theirs = step(oracle, random.Random(f"{seed}/{number}"), numbers[0])
        ours = step(repository, random.Random(f"{seed}/{number}"), numbers[1])
        assert theirs == ours, (seed, number)


def test_the_same_answers_as_the_files(tmp_path: Path) -> None:
    for seed in range(10):
        compare(tmp_path, seed, steps=40)


@pytest.mark.proof
def test_the_same_answers_on_longer_sequences(tmp_path: Path) -> None:
    for seed in range(100, 130):
        compare(tmp_path, seed, steps=80)


# --- the agent and the session manager of Strands ---


class ScriptedModel(Model):
    """A model that gives replies from a list, and keeps what it was asked."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self.replies = list(replies)
        self.requests: list[str] = []

    def update_config(self, **model_config: Any) -> None:
        """Nothing to configure."""

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[Any, None]:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, *_args: Any, **_kwargs: Any) -> AsyncGenerator[Any, None]:
        self.requests.append(str(messages))
        reply = self.replies.pop(0)
        if isinstance(reply, dict) and "redactContent" in reply:
            yield reply
            reply = "No."
        call = reply if isinstance(reply, dict) else None
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {"toolUse": call} if call else {}}}
        delta = {"toolUse": {"input": '{"city": "Oslo"}'}} if call else {"text": reply}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if call else "end_turn"}}


def agent_of(repository: Repository, model: Model, **options: Any) -> Agent:
    manager = RepositorySessionManager(session_id="one", session_repository=repository)
    return Agent(model=model, agent_id=AGENT, session_manager=manager, callback_handler=None, **options)


def test_an_agent_goes_on_in_a_second_process(tmp_path: Path) -> None:
    """A new repository, manager and agent, as a new process has them. A tool is called, and state is kept."""

    @tool
    def weather(city: str) -> str:
        """The weather."""
        return f"sunny in {city}"

    model = ScriptedModel([{"name": "weather", "toolUseId": "1"}, "It is sunny.", "In Oslo."])
    first = agent_of(Repository(tmp_path / "s.db", user_id="ada"), model, tools=[weather])
    first("I live in Oslo. How is the weather?")
    first.state.set("city", "Oslo")
    first("Where do I live?")
    repository = Repository(tmp_path / "s.db", user_id="ada")
    second = agent_of(repository, ScriptedModel(["Yes."]), tools=[weather])
    assert second.messages == first.messages
    assert second.state.get("city") == "Oslo"
    second("Really?")
    assert [each.message_id for each in repository.list_messages("one", AGENT)] == list(range(8))
    other = agent_of(Repository(tmp_path / "s.db", user_id="bob"), ScriptedModel([]))
    assert other.messages == []


@in_event_loop
async def test_a_redacted_message_is_in_no_memory(tmp_path: Path) -> None:
    url = str(tmp_path / "s.db")
    async with MemoryStore(url) as store:
        repository = Repository(url, user_id="ada", memory=store)
        model = ScriptedModel([{"redactContent": {"redactUserContentMessage": "[redacted]"}}])
        await agent_of(repository, model).invoke_async("My code is 4711-xylophone.")
        (stored, _) = repository.list_messages("one", AGENT)
        assert stored.to_message()["content"] == [{"text": "[redacted]"}]
        found = await store.search_conversations("xylophone", "strands", "ada")
        assert "xylophone" not in str([hit.message.content for hit in found.hits])
        (outline,) = await store.list_conversations("strands", "ada")
        conversation = await store.get_conversation(outline["conversation_id"])
        assert conversation is not None
        assert sorted(each.content for each in conversation.messages) == ["No.", "[redacted]"]
        repository.delete_session("one")
        assert await store.list_conversations("strands", "ada") == []
        await repository.aclose()


def test_a_swarm_keeps_its_state(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "s.db", user_id="ada")
    manager = RepositorySessionManager(session_id="one", session_repository=repository)
    member = Agent(model=ScriptedModel(["Done."]), name="member", callback_handler=None)
    swarm = Swarm([member], id="swarm", session_manager=manager)
    swarm("Do it.")
    stored = repository.read_multi_agent("one", "swarm")
    assert stored == swarm.serialize_state()
    assert repository.read_multi_agent("one", "none") is None


class RecordingModel(Model):
    """A model that always says the same, and keeps the prompts."""

    def __init__(self) -> None:
        self.seen: list[list[prompts.Block]] = []

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        raise NotImplementedError
        yield

    async def stream(
        self, messages: Any, _: Any = None, system_prompt: Any = None, **__: Any
    ) -> AsyncGenerator[Any, None]:
        blocks = [prompts.Block("system", str(system_prompt))]
        for each in messages:
            blocks += [prompts.Block(each["role"], block["text"]) for block in each["content"]]
        self.seen.append(blocks)
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": "Noted."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@in_event_loop
async def test_prompts_keep_their_prefix() -> None:
    model = RecordingModel()
    async with MemoryStore(":memory:", workers=0, embedder=None) as store:
        hooks = MemoryHooks(store, "ada", agent_id="desk", session_id="one")
        agent = Agent(model=model, system_prompt="Be brief.", hooks=[hooks], callback_handler=None)
        await prompts.converse(store, "desk", "ada", agent.invoke_async)
    assert "remembered-data" not in str(agent.messages), "nothing of it stays"
    assert agent.system_prompt == "Be brief."
    prompts.check(model.seen)
