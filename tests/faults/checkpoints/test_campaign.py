"""The short form: seeded episodes on each database, under some of the faults that it has."""

import asyncio
from pathlib import Path

import pytest

from recollect.integrations.langgraph import Checkpointer

from .campaign import run_at
from .checks import Said, check
from .client import KEPT, PRUNED
from .state import CHANNEL, Operation, config_of, metadata_of, new_checkpoint

_SIZES = {"sqlite": (240, 5), "postgresql": (120, 5)}
"""Operations and faults of an episode."""


@pytest.mark.proof
@pytest.mark.timeout(600)  # longer than the campaign waits, so that it can say what is stuck
@pytest.mark.parametrize(("place", "seed"), [("sqlite", 4), ("postgresql", 7)])
def test_checkpoints_are_whole_and_none_is_lost_whatever_fails(place: str, seed: int) -> None:
    operations, faults = _SIZES[place]
    account = run_at(place, [seed], operations, faults)
    assert account.findings == []
    assert account.operations.total() >= operations - 2 * faults
    assert account.faults.total() > 0


def test_the_checks_notice_what_is_lost_or_broken(tmp_path: Path) -> None:
    """On a sound database they find nothing; each harm to it is told."""
    url = str(tmp_path / "a.db")

    async def store(thread: str, items: list[dict[str, int]], wrong: list[dict[str, int]]) -> str:
        async with Checkpointer(url) as saver:
            checkpoint = new_checkpoint(items, "1")
            put = await saver.aput(
                config_of(thread), checkpoint, metadata_of(wrong), checkpoint["channel_versions"]
            )
            await saver.aput_writes(put, [(CHANNEL, [{"text": "t"}]), ("other", "t")], "task", "")
            return str(checkpoint["id"])

    items = [{"n": 1}]
    said = Said()
    for thread in (KEPT[0], PRUNED[0]):
        checkpoint_id = asyncio.run(store(thread, items, items))
        said.put[thread].add(checkpoint_id)
        said.written.append(Operation("put_writes", thread, checkpoint_id, text="t"))
    assert asyncio.run(check(url, said)) == []
    said.put[KEPT[0]].add("gone")
    said.put[PRUNED[0]].add("gone")
    said.written.append(Operation("put_writes", KEPT[0], checkpoint_id, text="t"))
    said.copied.add("copy-1")
    said.deleted.add(KEPT[0])
    asyncio.run(store(KEPT[1], items, [{"n": 2}]))
    found = " ".join(asyncio.run(check(url, said)))
    for told in ("other items", "are lost", "was pruned", "write is lost", "copy is lost", "deleted thread"):
        assert told in found
