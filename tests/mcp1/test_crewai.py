"""CrewAI: its storage in LanceDB as the oracle, and a crew with a scripted model."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from crewai import Agent, Crew, Memory, Task
from crewai.llms.base_llm import BaseLLM
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord

from recollect.integrations.crewai import MemoryStorage
from recollect.testing.adapters import AdapterContract

START = datetime(2026, 1, 1)  # noqa: DTZ001 - CrewAI has times without a zone


class Conversation:
    """The memories of a user and a crew, as CrewAI saves them. The oldest are first."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.storage = storage

    async def add(self, records: Sequence[Any]) -> None:
        await self.storage.asave(list(records))

    async def records(self) -> list[Any]:
        return self.storage.list_records(limit=10**9)[::-1]

    async def aclose(self) -> None:
        self.storage.close()


class TestMemoryStorage(AdapterContract):
    records_messages = False

    async def open(self, url: str, name: str, **options: Any) -> Conversation:
        return Conversation(MemoryStorage(url, agent_id=name, create_tables=True, **options))

    def record(self, text: str) -> Any:
        return MemoryRecord(content=text, created_at=START, embedding=[0.1, 0.2, 1e-300])

    def text_of(self, record: Any) -> str:
        return str(record.content)

    def odd_records(self) -> list[Any]:
        return [
            *super().odd_records(),
            MemoryRecord(content="", scope="/a/b_%", categories=["x", "é"], created_at=START, source="s"),
            MemoryRecord(
                content="x", metadata={"of": {"the": ["future", None]}}, private=True, created_at=START
            ),
        ]


# --- LanceDB as the oracle ---

SCOPES = ("/a", "/a/b", "/a/b/c", "/d", "/d/e")
CATEGORIES = ("red", "green", "blue")
STEPS = (
    *["save"] * 4,
    "update",
    "search",
    "search",
    "filter",
    "list",
    "info",
    "get",
    "drop",
    "delete",
    "reset",
)


def shown(memory: MemoryRecord | None) -> Any:
    """A memory without its vector, which LanceDB rounds."""
    return None if memory is None else memory.model_dump(mode="json")


def step(storage: Any, chance: random.Random, number: int) -> Any:
    """One random call. Times differ, so that every order is defined."""
    kind, scope, id_ = chance.choice(STEPS), chance.choice(SCOPES), f"m{chance.randrange(max(number, 1))}"
    categories = chance.sample(CATEGORIES, chance.randrange(3))
    vector, at = [chance.random() for _ in range(4)], START + timedelta(seconds=number)
    fields: dict[str, Any] = {"scope": scope, "categories": categories, "metadata": {"n": number % 3}}
    fields |= {"embedding": vector, "created_at": at, "last_accessed": at, "importance": 0.25}
    if kind == "save":
        return storage.save([MemoryRecord(id=f"m{number}", content=f"text {number}", **fields)])
    if kind == "update" and storage.get_record(id_):
        return storage.update(MemoryRecord(id=id_, content="new", **fields))
    if kind in ("search", "filter"):
        few = {"categories": categories, "metadata_filter": {"n": 1}, "limit": 50} if kind == "filter" else {}
        found = storage.search(vector, **{"scope_prefix": scope, "limit": 4, "min_score": 0.4, **few})
        return [(shown(memory), round(score, 4)) for memory, score in found]
    if kind == "list":
        return [shown(each) for each in storage.list_records(scope, limit=3, offset=number % 2)]
    if kind == "info":
        every = storage.list_scopes(), storage.list_scopes("/a"), storage.list_categories(scope)
        return storage.get_scope_info(scope), storage.get_scope_info("/"), *every, storage.count(scope)
    if kind == "drop":
        return storage.delete(record_ids=[id_, "none"])
    if kind == "delete":
        return storage.delete(scope, categories or ["red"], older_than=at - timedelta(seconds=5))
    if kind == "reset" and number % 5 == 0:
        return storage.reset(scope)
    return shown(storage.get_record(id_))


def compare(tmp_path: Path, seed: int, steps: int) -> None:
    """Do the same with our storage and with LanceDB, and compare all answers."""
    oracle = LanceDBStorage(path=str(tmp_path / f"lance{seed}"), vector_dim=4)
    storage = MemoryStorage(tmp_path / "memories.db", user_id=str(uuid4()))
    for number in range(steps):
        theirs, ours = (step(each, random.Random(f"{seed}/{number}"), number) for each in (oracle, storage))
        assert theirs == ours, (seed, number)
    storage.close()


def test_the_same_answers_as_lancedb(tmp_path: Path) -> None:
    for seed in range(3):
        compare(tmp_path, seed, steps=40)


@pytest.mark.proof
def test_the_same_answers_on_longer_sequences(tmp_path: Path) -> None:
    for seed in range(100, 110):
        compare(tmp_path, seed, steps=80)


def test_vectors_of_another_length_are_refused_and_uses_are_noted(tmp_path: Path) -> None:
    storage = MemoryStorage(tmp_path / "memories.db", user_id="ada")
    assert isinstance(storage, StorageBackend)
    storage.save([MemoryRecord(id="1", content="x", embedding=[1.0, 2.0], last_accessed=START)])
    with pytest.raises(EmbeddingDimensionMismatchError):
        storage.save([MemoryRecord(content="y", embedding=[1.0])])
    with pytest.raises(EmbeddingDimensionMismatchError):
        storage.search([1.0])
    assert storage.count() == 1
    storage.touch_records(["1"])
    found = storage.get_record("1")
    assert found is not None
    assert found.last_accessed > START
    storage.close()


# --- a crew of CrewAI ---


class ScriptedModel(BaseLLM):
    """A model that extracts one memory from a result, answers a task, and keeps what it was asked."""

    requests: list[str]

    def call(self, messages: Any, *_args: Any, response_model: Any = None, **_kwargs: Any) -> Any:
        self.requests.append(str(messages))
        if response_model is not None and "memories" in response_model.model_fields:
            return {"memories": ["The user lives in Oslo."]}
        return "The user lives in Oslo."  # where an analysis is asked for, CrewAI then uses its defaults

    def supports_function_calling(self) -> bool:
        return True


def embed(texts: list[str]) -> list[list[float]]:
    """A vector of letters: it needs no model."""
    return [
        [text.lower().count(each) / (len(text) or 1) for each in "abcdefghijklmnopqrstuvwxyz"]
        for text in texts
    ]


def run_crew(url: Path, model: ScriptedModel, task: str) -> None:
    storage = MemoryStorage(url, user_id="ada")
    memory = Memory(llm=model, storage=storage, embedder=embed)
    agent = Agent(role="helper", goal="help", backstory="none", llm=model)
    work = Task(description=task, expected_output="a text", agent=agent)
    Crew(agents=[agent], tasks=[work], memory=memory).kickoff()
    memory.drain_writes()
    memory.close()


def test_a_crew_knows_what_an_earlier_one_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    url = tmp_path / "memories.db"
    first, second = (ScriptedModel(model="scripted", requests=[]) for _ in range(2))
    run_crew(url, first, "Say where the user lives.")
    storage = MemoryStorage(url, user_id="ada")
    assert "The user lives in Oslo." in [each.content for each in storage.list_records()]
    run_crew(url, second, "Say in which city the user lives.")
    assert "Oslo" in second.requests[0]
    storage.reset()
    assert storage.count() == 0
    storage.close()
