"""Bad input: a clear error or an empty result, and nothing is lost. Stored data cannot execute code."""

import asyncio
import logging
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG, JsonPlusSerializer

from recollect.errors import InvalidTypeError, InvalidValueError
from recollect.integrations.langgraph import Checkpointer
from recollect.sql.scripts import Statement
from recollect.testing.contract import in_event_loop

from .graphs import config_of
from .test_storage import count_items, messages_at, put, talk


@in_event_loop
async def test_what_does_not_exist_is_not_found(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        assert await checkpointer.aget_tuple(config_of(thread_id)) is None
        config = await put(checkpointer, config_of(thread_id), talk(2))
        of_this = config["configurable"]["checkpoint_id"]
        assert await checkpointer.aget_tuple(config_of(thread_id, checkpoint_id="no-such")) is None
        assert await checkpointer.aget_tuple(config_of(f"{thread_id}-other", checkpoint_id=of_this)) is None
        found = [each async for each in checkpointer.alist(config_of(thread_id), filter={"no_such": None})]
        assert found == []
        await checkpointer.adelete_thread("no-such-thread")
        await checkpointer.adelete_for_runs(["no-such-run"])
        with pytest.raises(InvalidValueError, match="no checkpoints to copy"):
            await checkpointer.acopy_thread(f"{thread_id}-other", "new")
        with pytest.raises(InvalidValueError, match="'keep_latest' or 'delete'"):
            await checkpointer.aprune([thread_id], strategy="keep_some")
        assert await messages_at(checkpointer, config_of(thread_id)) == talk(2)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({}, InvalidTypeError),
        ({"configurable": {}}, InvalidValueError),
        ({"configurable": {"thread_id": ""}}, InvalidValueError),
        ({"configurable": {"thread_id": "nul\0"}}, InvalidValueError),
        ({"configurable": {"thread_id": "x" * 5000}}, InvalidValueError),
        ({"configurable": {"thread_id": ["x"]}}, InvalidTypeError),
        ({"configurable": {"thread_id": "x", "checkpoint_ns": 5}}, InvalidTypeError),
    ],
)
@in_event_loop
async def test_a_config_that_names_no_place_is_refused(config: Any, error: type[Exception]) -> None:
    async with Checkpointer(":memory:") as checkpointer:
        with pytest.raises(error):
            await checkpointer.aget_tuple(config)


@in_event_loop
async def test_any_namespace_and_channel_is_kept_apart(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        namespaces = ["", "a|b:1", "a", "|", "ü' OR 1=1 --", "a|b"]
        for number, namespace in enumerate(namespaces):
            await put(checkpointer, config_of(thread_id, checkpoint_ns=namespace), talk(number + 1))
        for number, namespace in enumerate(namespaces):
            config = config_of(thread_id, checkpoint_ns=namespace)
            assert await messages_at(checkpointer, config) == talk(number + 1)
        odd, newest = "nul\0 and \ud800", await checkpointer.aget_tuple(config_of(thread_id))
        assert newest is not None
        await checkpointer.aput_writes(newest.config, [(odd, 1)], "task", "path")
        found = await checkpointer.aget_tuple(newest.config)
        assert found is not None
        assert found.pending_writes == [("task", odd, 1)]


@in_event_loop
async def test_a_serializer_that_fails_half_way_stores_nothing(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        config = await put(checkpointer, config_of(thread_id), talk(2))
        with pytest.raises(TypeError):
            await put(checkpointer, config, [*talk(3), object()], step=1)
        with pytest.raises(TypeError):
            await checkpointer.aput_writes(config, [("a", 1), ("b", object())], "task")
        assert await count_items(checkpointer, thread_id) == 2
        found = await checkpointer.aget_tuple(config_of(thread_id))
        assert found is not None
        assert found.pending_writes == []
        assert found.config == config


@in_event_loop
async def test_a_closed_checkpointer_says_so() -> None:
    checkpointer = Checkpointer(":memory:")
    await checkpointer.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await checkpointer.aget_tuple(config_of("x"))


# --- what an attacker writes into the database ---


@dataclass
class Owned:
    """A class whose creation would be the attacker's success."""

    command: str
    created: ClassVar[list[str]] = []

    def __post_init__(self) -> None:
        self.created.append(self.command)


@in_event_loop
async def test_a_row_of_an_attacker_creates_no_object(
    url: str, thread_id: str, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows name `os.system` and a class of ours. Both are read as data."""
    proof = tmp_path / "owned"
    attacks = [("os", "system", f"touch {proof}"), (Owned.__module__, "Owned", "x")]
    async with Checkpointer(url, create_tables=True) as checkpointer:
        config = await put(
            checkpointer, config_of(thread_id), [HumanMessage(f"{n}", id=f"{n}") for n in range(2)]
        )
        await checkpointer.aput_writes(config, [("messages", "written")], "task")
        for attack in attacks:
            data = ormsgpack.packb(ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, ormsgpack.packb(attack)))
            for table in ("langgraph_items", "langgraph_writes"):
                await checkpointer._tables.write(lambda t=table, d=data: _overwrite(t, d))
            with caplog.at_level(logging.WARNING):
                found = await checkpointer.aget_tuple(config_of(thread_id))
            assert found is not None
            assert Owned.created == []
            assert not proof.exists()
    JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(("msgpack", data))
    assert Owned.created.pop() == "x"  # the attack is a real one


def _overwrite(table: str, data: bytes, kind: str = "msgpack") -> Any:
    yield Statement(f"UPDATE {table} SET kind = ?2, value = ?1", (data, kind))


class Pickled:
    """An object whose unpickling would run a command."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


@in_event_loop
async def test_a_pickle_of_an_attacker_is_refused(thread_id: str, tmp_path: Path) -> None:
    proof = tmp_path / "owned"
    attack = pickle.dumps(Pickled(f"touch {proof}"))
    async with Checkpointer(":memory:") as checkpointer:
        await put(checkpointer, config_of(thread_id), talk(2))
        for table in ("langgraph_items", "langgraph_values"):
            await checkpointer._tables.write(lambda t=table: _overwrite(t, attack, "pickle"))
            with pytest.raises(NotImplementedError, match="pickle"):
                await checkpointer.aget_tuple(config_of(thread_id))
    assert not proof.exists()
    pickle.loads(attack)  # the attack is a real one
    assert proof.exists()


@dataclass
class Profile:
    """A class of a user's state."""

    name: str


def test_classes_of_the_state_are_created_if_they_are_allowed(thread_id: str) -> None:
    async def read(**options: Any) -> Any:
        async with Checkpointer(":memory:", **options) as checkpointer:
            await put(checkpointer, config_of(thread_id), [Profile("Ada")])
            return (await messages_at(checkpointer, config_of(thread_id)))[0]

    assert asyncio.run(read(allow=[Profile])) == Profile("Ada")
    assert not isinstance(asyncio.run(read()), Profile)
    with pytest.raises(InvalidValueError, match="one of them"):
        Checkpointer(":memory:", serde=JsonPlusSerializer(), allow=[Profile])
