"""Google's ADK: its services in memory as oracles, and its own Runner with a scripted model."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import load_memory
from google.genai.types import Blob, Content, FunctionCall, FunctionResponse, Part

from recollect import MemoryStore
from recollect.integrations.adk import MemoryPlugin, MemoryService, SessionService
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop

from .. import prompts

APP = "agent"


def said(text: str, author: str = "user", **fields: Any) -> Event:
    role = "user" if author == "user" else "model"
    return Event(author=author, content=Content(role=role, parts=[Part(text=text)]), **fields)


class Conversation:
    """A session, as ADK appends to it. It is created when something is appended first."""

    def __init__(self, service: SessionService, user: str, name: str) -> None:
        self.service = service
        self.key = {"app_name": APP, "user_id": user, "session_id": name}

    async def add(self, records: Sequence[Any]) -> None:
        session = await self.service.get_session(**self.key)
        if session is None:
            try:
                session = await self.service.create_session(**self.key)
            except AlreadyExistsError:  # another writer was faster
                session = await self.service.get_session(**self.key)
        assert session is not None
        for record in records:
            await self.service.append_event(session, record)

    async def records(self) -> list[Any]:
        session = await self.service.get_session(**self.key)
        return [] if session is None else session.events

    async def aclose(self) -> None:
        await self.service.aclose()


class TestSessionService(AdapterContract):
    batch = 1

    async def open(self, url: str, name: str, **options: Any) -> Conversation:
        user = options.pop("user_id")
        return Conversation(SessionService(url, create_tables=True, **options), user, name)

    def record(self, text: str) -> Any:
        return said(text)

    def text_of(self, record: Any) -> str:
        return str(record.content.parts[0].text)

    def odd_records(self) -> list[Any]:
        call = FunctionCall(id="1", name="weather", args={"city": "Oslo", "days": [1, None]})
        output = FunctionResponse(id="1", name="weather", response={"result": 1.5})
        parts = [
            Part(text="hm", thought=True, thought_signature=b"\x00\xff"),
            Part(text="a"),
            Part(function_call=call),
        ]
        return [
            *super().odd_records(),
            Event(author=APP, content=Content(role="model", parts=parts), long_running_tool_ids={"1", "2"}),
            Event(author=APP, content=Content(role="user", parts=[Part(function_response=output)])),
            Event(
                author="user", content=Content(parts=[Part(inline_data=Blob(data=b"\x89P", mime_type="a/b"))])
            ),
            said("state", actions=EventActions(state_delta={"a": {"b": [None]}, "user:c": None, "app:d": 1})),
            said("more", custom_metadata={"of": {"the": ["future", None]}}, branch="a.b", output={"x": None}),
            Event(author="user"),
            Event(author=APP, error_code="500", error_message="no"),
        ]


# --- the service in memory as the oracle ---

KEYS = ("a", "b", "user:a", "user:b", "app:a", "app:b", "temp:a")
STEPS = (*["append"] * 5, "append old", "append again", "create", "get", "recent", "after", "list", "delete")


def shown(session: Session | None) -> Any:
    """What both services must agree on. The time of creation is a different one in each."""
    if session is None:
        return None
    times = {"last_update_time": session.last_update_time if session.events else None}
    return session.model_dump(mode="json", exclude={"last_update_time"}) | times


class Walk:
    """Random calls of one service. Two services with the same seed get the same calls."""

    def __init__(self, service: BaseSessionService, seed: int, users: Sequence[str], app: str) -> None:
        self.service, self.chance, self.users, self.app = service, random.Random(seed), users, app
        self.held: dict[tuple[str, str], list[Session]] = {}  # what the caller has, the oldest first
        self.clock = 1000.0
        self.events: list[Event] = []

    async def step(self) -> Any:
        user, name = self.chance.choice(self.users), self.chance.choice(["x", "y", " z "])
        key = {"app_name": self.app, "user_id": user, "session_id": name}
        kind = self.chance.choice(STEPS)
        try:
            return kind, await self._do(kind, key)
        except (AlreadyExistsError, SessionNotFoundError) as error:
            return kind, type(error).__name__

    async def _do(self, kind: str, key: dict[str, str]) -> Any:
        held = self.held.setdefault((key["user_id"], key["session_id"]), [])
        if kind.startswith("append"):
            return await self._append(kind, key, held)
        if kind == "delete":
            return await self.service.delete_session(**key)
        if kind == "list":
            user = self.chance.choice([key["user_id"], None])
            listed = await self.service.list_sessions(app_name=self.app, user_id=user)
            return sorted(str(shown(each)) for each in listed.sessions)
        if kind == "create":
            made = await self.service.create_session(**key, state=self._state())
        else:
            made = await self.service.get_session(**key, config=self._config(kind))
        if made is not None:
            held.append(made)
        return shown(made), await self.service.get_user_state(app_name=self.app, user_id=key["user_id"])

    async def _append(self, kind: str, key: dict[str, str], held: list[Session]) -> Any:
        event = self._event()
        if kind == "append again" and self.events:
            event = self.chance.choice(self.events).model_copy(deep=True)
        if not held:
            return None
        session = held[0 if kind == "append old" else -1]
        await self.service.append_event(session, event)
        if kind != "append again":
            self.events.append(event)
            return shown(session)
        return shown(await self.service.get_session(**key))

    def _event(self) -> Event:
        self.clock += self.chance.choice([0, 1.5])
        number = self.chance.randrange(10**9)
        fields = {"id": f"e{number}", "timestamp": self.clock, "invocation_id": "i"}
        return said(str(number), actions=EventActions(state_delta=self._state()), **fields)

    def _state(self) -> dict[str, Any]:
        keys = self.chance.sample(KEYS, self.chance.randrange(3))
        return {key: self.chance.choice([1, None, "x", {"y": [self.chance.random()]}]) for key in keys}

    def _config(self, kind: str) -> GetSessionConfig | None:
        if kind == "recent":
            return GetSessionConfig(num_recent_events=self.chance.randrange(4))
        return GetSessionConfig(after_timestamp=self.clock - 3) if kind == "after" else None


async def compare(url: str, seed: int, steps: int) -> None:
    """Do the same with our service and with that of ADK, and compare all answers."""
    users, app = [str(uuid4()), str(uuid4())], str(uuid4())
    service = SessionService(url, create_tables=True)
    theirs, ours = (Walk(each, seed, users, app) for each in (InMemorySessionService(), service))
    for number in range(steps):
        assert await theirs.step() == await ours.step(), (seed, number)
    await service.aclose()


@in_event_loop
async def test_the_same_answers_as_the_service_in_memory(tmp_path: Path) -> None:
    for seed in range(6):
        await compare(str(tmp_path / "sessions.db"), seed, steps=40)


@pytest.mark.proof
@in_event_loop
async def test_the_same_answers_on_longer_sequences(adapter_url: str) -> None:
    for seed in range(100, 110):
        await compare(adapter_url, seed, steps=80)


@in_event_loop
async def test_sessions_are_listed_by_their_last_use(tmp_path: Path) -> None:
    service = SessionService(tmp_path / "sessions.db")
    made = [await service.create_session(app_name=APP, user_id="ada", session_id=each) for each in "abc"]
    await service.append_event(made[0], said("later", timestamp=made[2].last_update_time + 1))
    listed = await service.list_sessions(app_name=APP, user_id="ada")
    assert [each.id for each in listed.sessions] == ["b", "c", "a"]
    await service.aclose()


@in_event_loop
async def test_many_changes_of_shared_state_become_one(tmp_path: Path) -> None:
    service = SessionService(tmp_path / "sessions.db")
    session = await service.create_session(app_name=APP, user_id="ada")
    for number in range(120):
        change = EventActions(state_delta={"user:n": number, f"user:{number % 3}": number})
        await service.append_event(session, Event(author=APP, actions=change))
    for _ in range(2):  # the first call makes one of them
        found = await service.get_user_state(app_name=APP, user_id="ada")
        assert found == {"n": 119, "0": 117, "1": 118, "2": 119}
    await service.aclose()


# --- ADK's own Runner ---


class ScriptedModel(BaseLlm):
    """A model that gives replies from a list, and keeps what it was asked."""

    model: str = "scripted"
    replies: list[Part]
    requests: list[str]

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002
    ) -> AsyncGenerator[LlmResponse, None]:
        self.requests.append(llm_request.model_dump_json(include={"contents"}))
        yield LlmResponse(content=Content(role="model", parts=[self.replies[len(self.requests) - 1]]))


async def run(runner: Runner, text: str, session_id: str) -> list[Event]:
    message = Content(role="user", parts=[Part(text=text)])
    return [
        event async for event in runner.run_async(user_id="ada", session_id=session_id, new_message=message)
    ]


@in_event_loop
async def test_a_runner_goes_on_in_a_second_process(tmp_path: Path) -> None:
    """A new service and a new runner, as a new process has them. A tool changes the state."""
    url = str(tmp_path / "sessions.db")

    def note(city: str, tool_context: Any) -> str:
        """Note a city."""
        tool_context.state["user:city"] = city
        tool_context.state["temp:only"] = "now"
        return "noted"

    call = Part(function_call=FunctionCall(name="note", args={"city": "Oslo"}))
    model = ScriptedModel(replies=[call, Part(text="Noted."), Part(text="In Oslo.")], requests=[])
    for number, text in enumerate(["I live in Oslo.", "Where do I live?"]):
        service = SessionService(url)
        if number == 0:
            await service.create_session(app_name=APP, user_id="ada", session_id="one")
        agent = LlmAgent(name="helper", model=model, tools=[note], output_key="last")
        await run(Runner(app_name=APP, agent=agent, session_service=service), text, "one")
    assert "I live in Oslo." in model.requests[-1]
    stored = await service.get_session(app_name=APP, user_id="ada", session_id="one")
    assert stored is not None
    assert stored.state == {"user:city": "Oslo", "last": "In Oslo."}
    assert [event.author for event in stored.events] == ["user", *["helper"] * 3, "user", "helper"]
    assert await service.get_user_state(app_name=APP, user_id="ada") == {"city": "Oslo"}
    await service.aclose()


@in_event_loop
async def test_an_agent_loads_what_an_earlier_session_said(tmp_path: Path) -> None:
    url = str(tmp_path / "sessions.db")
    async with MemoryStore(url) as store:
        sessions, memory = SessionService(url), MemoryService(store, url)
        call = Part(
            function_call=FunctionCall(name="load_memory", args={"query": "Where does the user live?"})
        )
        model = ScriptedModel(replies=[Part(text="Nice."), call, Part(text="In Oslo.")], requests=[])
        agent = LlmAgent(name="helper", model=model, tools=[load_memory])
        runner = Runner(app_name=APP, agent=agent, session_service=sessions, memory_service=memory)
        for number, text in enumerate(["I live in Oslo with two cats.", "Where do I live?"]):
            key = {"app_name": APP, "user_id": "ada", "session_id": str(number)}
            await sessions.create_session(**key)
            await run(runner, text, str(number))
            stored = await sessions.get_session(**key)
            assert stored is not None
            await memory.add_session_to_memory(stored)
            await store.drain()
        assert "Oslo" in model.requests[-1]
        await memory.aclose()
        await sessions.aclose()


# --- the memory service ---


async def find(memory: MemoryService, query: str, user: str = "ada") -> dict[str, str]:
    found = await memory.search_memory(app_name=APP, user_id=user, query=query)
    return {str(each.id): str(each.content.parts and each.content.parts[0].text) for each in found.memories}


@in_event_loop
async def test_a_session_is_added_again_and_a_deleted_memory_stays_deleted(adapter_url: str) -> None:
    user = str(uuid4())
    async with MemoryStore(adapter_url, create_tables=True) as store:
        memory = MemoryService(store, adapter_url, learn=False, create_tables=True)
        session = Session(id="s", app_name=APP, user_id=user)
        session.events = [said("My cat is called Muon."), said("A nice name.", author="helper")]
        for _ in range(2):
            await memory.add_session_to_memory(session)
        found = await find(memory, "What is the name of my cat?", user)
        assert list(found.values()).count("My cat is called Muon.") == 1
        assert await find(memory, "What is the name of my cat?", str(uuid4())) == {}
        (mine,) = [each for each, text in found.items() if "Muon" in text]
        await memory.delete_memory(app_name=APP, user_id="somebody else", memory_id=mine)
        assert mine in await find(memory, "What is the name of my cat?", user)
        await memory.delete_memory(app_name=APP, user_id=user, memory_id=mine)
        await memory.add_session_to_memory(session)
        assert "Muon" not in str(await find(memory, "What is the name of my cat?", user))
        await memory.aclose()


@in_event_loop
async def test_statements_are_added_found_and_deleted(tmp_path: Path) -> None:
    url = str(tmp_path / "sessions.db")
    async with MemoryStore(url) as store:
        memory = MemoryService(store, url)
        entry = MemoryEntry(content=Content(parts=[Part(text="The user lives in Oslo.")]))
        await memory.add_memory(app_name=APP, user_id="ada", memories=[entry, entry])
        ((memory_id, text),) = (await find(memory, "Where does the user live?")).items()
        assert text == "The user lives in Oslo."
        for unknown in (None, "", "entry:none", "message:none:none", "nothing"):
            await memory.delete_memory(app_name=APP, user_id="ada", memory_id=unknown)
        await memory.delete_memory(app_name=APP, user_id="ada", memory_id=memory_id)
        assert await find(memory, "Where does the user live?") == {}
        await memory.aclose()


@in_event_loop
async def test_a_session_that_its_service_records_is_not_recorded_twice(tmp_path: Path) -> None:
    url = str(tmp_path / "sessions.db")
    async with MemoryStore(url) as store:
        sessions, memory = SessionService(url, memory=store), MemoryService(store, url)
        session = await sessions.create_session(app_name=APP, user_id="ada", session_id="s")
        await sessions.append_event(session, said("My cat is called Muon."))
        await memory.add_session_to_memory(session)
        assert len(await store.list_conversations(APP, "ada")) == 1
        await sessions.delete_session(app_name=APP, user_id="ada", session_id="s")
        assert await store.list_conversations(APP, "ada") == []
        await memory.aclose()
        await sessions.aclose()


@in_event_loop
async def test_a_repeated_call_completes_one_that_was_cancelled(tmp_path: Path) -> None:
    """The state of the user is in another session than the event. Both are there once, whatever happened."""
    service, chance = SessionService(tmp_path / "sessions.db"), random.Random(5)
    session = await service.create_session(app_name=APP, user_id="ada", session_id="s")
    for number in range(15):
        event = said(str(number), actions=EventActions(state_delta={"user:n": number, f"user:{number}": 1}))
        task = asyncio.ensure_future(service.append_event(session.model_copy(deep=True), event))
        await asyncio.sleep(chance.choice([0, 0.001, 0.003, 0.006]))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await service.append_event(session, event)
    stored = await service.get_session(app_name=APP, user_id="ada", session_id="s")
    assert stored is not None
    assert [event.content.parts[0].text for event in stored.events] == [str(n) for n in range(15)]
    state = await service.get_user_state(app_name=APP, user_id="ada")
    assert state == {"n": 14, **{str(n): 1 for n in range(15)}}
    await service.aclose()


class RecordingModel(BaseLlm):
    """A model that always says the same, and keeps the prompts."""

    model: str = "recording"
    seen: list[list[prompts.Block]]

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002
    ) -> AsyncGenerator[LlmResponse, None]:
        blocks = [prompts.Block("system", str(llm_request.config.system_instruction))]
        for content in llm_request.contents:
            blocks += [prompts.Block(content.role or "", part.text or "") for part in content.parts or ()]
        self.seen.append(blocks)
        yield LlmResponse(content=Content(role="model", parts=[Part(text="Noted.")]))


@in_event_loop
async def test_prompts_keep_their_prefix(tmp_path: Path) -> None:
    url = str(tmp_path / "sessions.db")
    key = {"app_name": APP, "user_id": "ada", "session_id": "one"}
    async with MemoryStore(url, workers=0, embedder=None) as store:
        sessions, model = SessionService(url, memory=store), RecordingModel(seen=[])
        await sessions.create_session(**key)
        app = App(
            name=APP,
            root_agent=LlmAgent(name="helper", model=model, instruction="Be brief."),
            plugins=[MemoryPlugin(store)],
        )
        runner = Runner(app=app, session_service=sessions)
        await prompts.converse(store, APP, "ada", lambda question: run(runner, question, "one"))
        stored = await sessions.get_session(**key)
        assert stored is not None
        assert "remembered-data" not in str(stored.events)
        await sessions.aclose()
    prompts.check(model.seen)
