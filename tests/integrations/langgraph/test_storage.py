"""What is stored: each item of a list once. Nothing that a checkpoint needs is lost."""

import asyncio
import random
from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from recollect import ConflictError
from recollect.integrations.langgraph import Checkpointer
from recollect.integrations.langgraph.known import KnownList, digest_of, resolve, reuse_known, store_all
from recollect.integrations.langgraph.ranges import Range, from_bytes, of_positions, positions, to_bytes
from recollect.integrations.langgraph.tables import CheckpointTables
from recollect.testing.contract import in_event_loop

from .graphs import config_of


async def put(
    checkpointer: Checkpointer, config: Any, messages: list[Any], *, step: int = 0, metadata: Any = None
) -> Any:
    """Store a checkpoint whose only channel has a new version."""
    version = checkpointer.get_next_version(None, None)
    checkpoint: Any = {
        "v": 4,
        "id": str(uuid6(clock_seq=step)),
        "ts": "2026-11-17T00:00:00+00:00",
        "channel_values": {"messages": messages},
        "channel_versions": {"messages": version},
        "versions_seen": {},
        "updated_channels": ["messages"],
    }
    config["configurable"].setdefault("checkpoint_ns", "")
    return await checkpointer.aput(config, checkpoint, metadata or {"step": step}, {"messages": version})


async def messages_at(checkpointer: Checkpointer, config: Any) -> list[Any]:
    """The messages of a checkpoint."""
    found = await checkpointer.aget_tuple(config)
    assert found is not None
    messages: list[Any] = found.checkpoint["channel_values"]["messages"]
    return messages


async def count_items(url: str | Checkpointer, thread_id: str) -> int:
    """How many items are stored for a thread."""
    tables = url._tables if isinstance(url, Checkpointer) else CheckpointTables(url)
    sql = (
        "SELECT count(*) FROM langgraph_items i JOIN langgraph_threads t ON t.id = i.thread"
        " WHERE t.thread_id = ?1"
    )
    return await tables.fetch(sql, (thread_id,), lambda rows: int(rows[0][0]))


def talk(count: int, start: int = 0) -> list[AnyMessage]:
    """Messages with ids."""
    return [HumanMessage(f"message {n}", id=f"m{n}") for n in range(start, start + count)]


@in_event_loop
async def test_a_list_that_grows_by_two_stores_two_items(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        config, messages, stored = config_of(thread_id), talk(3), {}
        for step in range(10):
            config = await put(checkpointer, config, messages, step=step)
            stored[step] = (config, messages)
            assert await count_items(checkpointer, thread_id) == 3 + 2 * step
            messages = messages + talk(2, 100 + 2 * step)
        for config, messages in stored.values():
            assert await messages_at(checkpointer, config) == messages


@in_event_loop
async def test_another_object_that_reads_first_stores_only_what_is_new(
    shared_url: str, thread_id: str
) -> None:
    async with Checkpointer(shared_url, create_tables=True) as first:
        config = await put(first, config_of(thread_id), talk(30))
    async with Checkpointer(shared_url) as second:
        found = await messages_at(second, config_of(thread_id))
        await put(second, config, [*found, *talk(2, 100)], step=1)
        assert await count_items(second, thread_id) == 32
    async with Checkpointer(shared_url) as third:  # which knows nothing, and compares bytes
        await put(third, config, [*talk(30), *talk(1, 200)], step=2)
        assert await count_items(third, thread_id) == 33
        assert len(await messages_at(third, config_of(thread_id))) == 31


@in_event_loop
async def test_an_item_that_was_changed_in_place_is_stored_anew(url: str, thread_id: str) -> None:
    """The old checkpoint keeps the old item."""
    async with Checkpointer(url, create_tables=True) as checkpointer:
        messages = [AIMessage("old", id=f"a{n}", additional_kwargs={"n": n}) for n in range(50)]
        before = await put(checkpointer, config_of(thread_id), messages)
        messages[3].content = "new"
        messages[49].additional_kwargs["n"] = -1
        between = await put(checkpointer, before, [*messages, *talk(1)], step=1)
        messages[5].additional_kwargs["n"] = -5
        await put(checkpointer, between, [*messages, *talk(1)], step=2)
        old, new = (
            await messages_at(checkpointer, before),
            await messages_at(checkpointer, config_of(thread_id)),
        )
        assert (old[3].content, old[49].additional_kwargs, old[5].additional_kwargs) == (
            "old",
            {"n": 49},
            {"n": 5},
        )
        assert (new[3].content, new[49].additional_kwargs, new[5].additional_kwargs) == (
            "new",
            {"n": -1},
            {"n": -5},
        )
        assert await count_items(checkpointer, thread_id) == 50 + 3 + 1


@in_event_loop
async def test_pruning_removes_items_that_no_checkpoint_needs(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        first = await put(checkpointer, config_of(thread_id), talk(10), metadata={"run_id": f"{thread_id}-1"})
        kept = talk(10)[5:] + talk(3, 50)
        second = await put(checkpointer, first, kept, step=1, metadata={"run_id": f"{thread_id}-2"})
        assert await count_items(checkpointer, thread_id) == 13
        await checkpointer.aprune([thread_id])
        assert await count_items(checkpointer, thread_id) == 8
        assert await checkpointer.aget_tuple(first) is None
        assert await messages_at(checkpointer, second) == kept
        third = await put(checkpointer, second, [*kept, *talk(1, 90)], step=2)
        assert len(await messages_at(checkpointer, third)) == 9
        await checkpointer.adelete_for_runs([f"{thread_id}-2"])
        assert await messages_at(checkpointer, third) == [*kept, *talk(1, 90)]
        with pytest.raises(ConflictError, match="exists already"):
            await checkpointer.acopy_thread(thread_id, thread_id)


@in_event_loop
async def test_items_that_another_process_removes_are_stored_anew(shared_url: str, thread_id: str) -> None:
    async with Checkpointer(shared_url, create_tables=True) as one, Checkpointer(shared_url) as other:
        messages = talk(20)
        old = await put(one, config_of(thread_id), messages)
        await put(other, old, talk(2, 50), step=1)
        await other.aprune([thread_id])
        assert await count_items(one, thread_id) == 2
        forked = await put(one, old, [*messages, *talk(1, 90)], step=2)
        assert await messages_at(other, forked) == [*messages, *talk(1, 90)]
        await other.adelete_thread(thread_id)
        again = await put(one, forked, [*messages, *talk(2, 90)], step=3)
        assert await messages_at(other, again) == [*messages, *talk(2, 90)]


class Cipher:
    """A cipher that gives other bytes each time."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        salt = random.randbytes(8)
        return "xor", salt + bytes(byte ^ salt[0] for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "xor"
        return bytes(byte ^ ciphertext[0] for byte in ciphertext[8:])


@in_event_loop
async def test_encrypted_values_are_stored_once_too(shared_url: str, thread_id: str) -> None:
    serde = EncryptedSerializer(Cipher(), JsonPlusSerializer(allowed_msgpack_modules=None))
    async with Checkpointer(shared_url, serde=serde, create_tables=True) as checkpointer:
        config = await put(checkpointer, config_of(thread_id), talk(20))
        config = await put(checkpointer, config, [*talk(20), *talk(2, 50)], step=1)
        assert await count_items(checkpointer, thread_id) == 22
        await checkpointer.aput_writes(config, [("messages", talk(1))], "task")
    async with Checkpointer(shared_url, serde=serde) as other:
        await put(other, config, [*talk(20), *talk(3, 50)], step=2)
        assert await count_items(other, thread_id) == 23
        assert len(await messages_at(other, config_of(thread_id))) == 23
        raw = await other._tables.fetch(
            "SELECT count(*) FROM langgraph_items i JOIN langgraph_threads t ON t.id = i.thread"
            " WHERE t.thread_id = ?1 AND kind <> 'msgpack+xor'",
            (thread_id,),
            lambda rows: rows[0][0],
        )
        assert raw == 0


# --- what is decided in pure functions ---


def digests_of(items: Sequence[object]) -> list[int]:
    return [digest_of(JsonPlusSerializer(), item) for item in items]


@given(st.lists(st.integers(0, 60)))
def test_ranges_hold_any_sequence_of_positions(places: list[int]) -> None:
    ranges = of_positions(places)
    assert positions(ranges) == places
    assert from_bytes(to_bytes(ranges)) == ranges


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 40), max_size=30), min_size=1, max_size=6))
def test_a_list_is_found_again_whatever_happens_to_it(versions: list[list[int]]) -> None:
    """Items that stay, move, vanish and return: each version is read as it was stored."""
    objects = {number: {"n": number} for number in range(41)}
    log: list[Any] = []
    known = KnownList([], ())
    for version in versions:
        items = [objects[number] for number in version]
        digests = digests_of(items)
        reuse = reuse_known(known, digests)
        ranges = resolve(reuse, len(log))
        after = items[sum(end - start for start, end in reuse.prefix) :]
        log += [item for item, at in zip(after, reuse.rest, strict=True) if at is None]
        assert [log[position] for position in positions(ranges)] == items
        known = KnownList(digests, ranges)


def test_a_list_in_too_many_pieces_is_stored_anew() -> None:
    digests = digests_of([{"n": number} for number in range(400)])
    reuse = reuse_known(KnownList(digests, (Range(0, 400),)), digests[::2])
    assert reuse == store_all(digests[::2])


class Labels(dict[str, int]):
    """A mapping that may have fields beside its contents."""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (AIMessage("a", id="1"), HumanMessage("a", id="1")),
        (AIMessage("a", id="1"), AIMessage("a", id="2")),
        (
            AIMessage("a", at=datetime(2026, 1, 1, tzinfo=UTC)),
            AIMessage("a", at=datetime(2026, 1, 2, tzinfo=UTC)),
        ),
        ({"a": 1}, {"a": True}),
        (1, 1.0),
        ((1,), [1]),
        (Labels(a=1), Labels(a=2)),
        ("a", b"a"),
    ],
)
def test_items_that_differ_have_different_digests(one: object, other: object) -> None:
    assert len(set(digests_of([one, other]))) == 2
    assert digests_of([one, other]) == digests_of([deepcopy(one), deepcopy(other)])


@in_event_loop
async def test_random_histories_with_forks_are_read_as_they_were_put(tmp_path: Path) -> None:
    """Two checkpointers, one thread, forks at random: every checkpoint keeps its messages."""
    chance = random.Random(20261117)
    url, thread_id = str(tmp_path / "random.db"), str(uuid4())
    async with Checkpointer(url) as one, Checkpointer(url) as other:
        expected: dict[str, tuple[Any, list[Any]]] = {}
        config, messages = config_of(thread_id), []
        for step in range(60):
            if expected and chance.random() < 0.3:
                config, messages = chance.choice(list(expected.values()))
                if chance.random() < 0.5:
                    messages = await messages_at(chance.choice([one, other]), config)
            kept = [each for each in messages if chance.random() < 0.97]
            messages = kept + talk(chance.randrange(1, 4), 10 * step)
            config = await put(
                chance.choice([one, other]), config, messages, step=step, metadata={"run_id": f"r{step % 5}"}
            )
            expected[config["configurable"]["checkpoint_id"]] = (config, messages)
        await one.adelete_for_runs(["r1", "r3"])
        for number, (config, messages) in enumerate(expected.values()):
            if number % 5 in (1, 3):
                assert await other.aget_tuple(config) is None
            else:
                assert await messages_at(other, config) == messages
        assert len([each async for each in one.alist(config_of(thread_id))]) == 36


@in_event_loop
async def test_branches_that_are_stored_at_the_same_time_are_whole(shared_url: str, thread_id: str) -> None:
    async with Checkpointer(shared_url, create_tables=True) as one, Checkpointer(shared_url) as other:
        start = await put(one, config_of(thread_id), talk(5))
        added = [talk(5) + talk(3, 100 * number) for number in range(1, 31)]
        storing = [put((one, other)[n % 2], start, messages, step=n) for n, messages in enumerate(added)]
        configs = await asyncio.gather(*storing)
        for config, messages in zip(configs, added, strict=True):
            assert await messages_at(other, config) == messages
        assert await count_items(one, thread_id) == 5 + 30 * 3


@in_event_loop
async def test_reads_during_pruning_are_whole(shared_url: str, thread_id: str) -> None:
    async with Checkpointer(shared_url, create_tables=True) as one, Checkpointer(shared_url) as other:
        config = await put(one, config_of(thread_id), talk(50))

        async def prune() -> None:
            for _ in range(20):
                await other.aprune([thread_id])

        pruning = asyncio.ensure_future(prune())
        for step in range(1, 20):
            messages = talk(50 + step)
            config = await put(one, config, messages, step=step)
            assert await messages_at(other, config_of(thread_id)) == messages
        await pruning


@in_event_loop
async def test_what_another_process_did_meanwhile_is_noticed(shared_url: str, thread_id: str) -> None:
    """It added items, pruned, or deleted the thread: what this one knows of positions is outdated."""
    async with (
        Checkpointer(shared_url, create_tables=True) as here,
        Checkpointer(shared_url, create_tables=True) as there,
    ):
        mine = await put(here, config_of(thread_id), talk(3))
        mine = await put(here, mine, talk(5), step=1)
        theirs = await put(there, mine, [*talk(5), *talk(2, 100)], step=2)
        mine = await put(here, mine, [*talk(5), *talk(4, 200)], step=3)
        assert await messages_at(there, mine) == [*talk(5), *talk(4, 200)]
        assert await messages_at(here, theirs) == [*talk(5), *talk(2, 100)]

        await there.aprune([thread_id])
        mine = await put(here, mine, [*talk(5), *talk(6, 200)], step=4)
        assert await messages_at(there, mine) == [*talk(5), *talk(6, 200)]

        await there.adelete_thread(thread_id)
        await here.aput_writes(mine, [("log", "late")], "task")
        mine = await put(here, mine, [*talk(5), *talk(7, 200)], step=5)
        await here.aput_writes(mine, [("log", "in time"), ("__error__", "x")], "task")
        found = await there.aget_tuple(mine)
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == [*talk(5), *talk(7, 200)]
        assert {write[1:] for write in found.pending_writes or ()} == {("log", "in time"), ("__error__", "x")}


@pytest.mark.parametrize(
    "change",
    [
        lambda message: setattr(message, "content", "changed"),
        lambda message: message.additional_kwargs.update(a=1),
        lambda message: message.additional_kwargs["nested"].append(True),
        lambda message: setattr(message, "extra", "field"),
        lambda message: message.response_metadata.update(at=datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
@in_event_loop
async def test_a_message_that_was_changed_in_place_is_stored_anew(change: Any) -> None:
    async with Checkpointer(":memory:") as checkpointer:
        messages = talk(3)
        messages[-1].additional_kwargs["nested"] = [1]
        config = await put(checkpointer, config_of("t"), messages)
        change(messages[-1])
        changed = await put(checkpointer, config, [*messages, *talk(1, 300)], step=1)
        assert await messages_at(checkpointer, changed) == [*messages, *talk(1, 300)]
        before = await messages_at(checkpointer, config)
        assert before[-1].additional_kwargs == {"nested": [1]}
