"""What must hold when all clients have ended."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from recollect.integrations.langgraph import Checkpointer
from recollect.integrations.langgraph import ranges as ranges_
from recollect.integrations.langgraph.ranges import from_bytes
from recollect.integrations.langgraph.values import LIST

from ..memory.journal import read_lines
from .client import KEPT, PRUNED
from .state import CHANNEL, Operation, config_of, wrong_with

_CHILDREN = ("checkpoints", "values", "items", "writes")


@dataclass
class Said:
    """What the clients were told, from all journals."""

    put: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The acknowledged checkpoints of each thread."""
    written: list[Operation] = field(default_factory=list)
    copied: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    maybe_deleted: set[str] = field(default_factory=set)


def read_all(journals: Sequence[Path]) -> Said:
    """What was acknowledged."""
    said = Said()
    for path in journals:
        intended: dict[int, Operation] = {}
        for what, task, told in read_lines(path):
            if what == "intend":
                intended[task] = msgspec.convert(told, Operation)
                if intended[task].do == "delete":
                    said.maybe_deleted.add(intended[task].thread)
            elif what == "acknowledged":
                _note(said, intended.pop(task))
    return said


def _note(said: Said, operation: Operation) -> None:
    if operation.do == "put":
        said.put[operation.thread].add(operation.checkpoint_id)
    elif operation.do == "put_writes":
        said.written.append(operation)
    elif operation.do == "copy":
        said.copied.add(operation.to)
    else:
        said.deleted.add(operation.thread)


async def check(url: str, said: Said) -> list[str]:
    """What does not hold."""
    async with Checkpointer(url) as checkpointer:
        found = await _read_threads(checkpointer)
        wrong = [*_wrong_in(found, said)]
        await checkpointer.aprune(PRUNED)
        for thread in PRUNED:
            left = [each async for each in checkpointer.alist(config_of(thread))]
            wrong += [f"{thread}: {why}" for each in left if (why := wrong_with(each))]
            if len(left) != bool(said.put[thread]):
                wrong.append(f"{thread} has {len(left)} checkpoints after it was pruned")
        return wrong + await _left_over(checkpointer)


async def _read_threads(checkpointer: Checkpointer) -> dict[str, dict[str, Any]]:
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    async for each in checkpointer.alist(None):
        named = each.config["configurable"]
        found[named["thread_id"]][named["checkpoint_id"]] = each
    return found


def _wrong_in(found: dict[str, dict[str, Any]], said: Said) -> Iterator[str]:
    for thread, checkpoints in found.items():
        for each in checkpoints.values():
            if wrong := wrong_with(each):
                yield f"{thread}: {wrong}"
    for thread in KEPT:
        if lost := said.put[thread] - found.get(thread, {}).keys():
            yield f"{thread}: {len(lost)} acknowledged checkpoints are lost"
    for thread in PRUNED:
        if said.put[thread] and max(said.put[thread]) not in found.get(thread, {}):
            yield f"{thread}: the newest acknowledged checkpoint was pruned"
    for operation in said.written:
        if operation.thread in KEPT:
            each = found.get(operation.thread, {}).get(operation.checkpoint_id)
            stored = [] if each is None else [write[1:] for write in each.pending_writes]
            if (CHANNEL, [{"text": operation.text}]) not in stored or ("other", operation.text) not in stored:
                yield f"{operation.thread}: an acknowledged write is lost"
    for thread in said.copied - said.maybe_deleted:
        if not found.get(thread):
            yield "an acknowledged copy is lost"
    for thread in said.deleted:
        if found.get(thread):
            yield "a deleted thread is there"


async def _left_over(checkpointer: Checkpointer) -> list[str]:
    """Rows that belong to nothing, and items that no checkpoint of a pruned thread needs."""
    tables, wrong = checkpointer._tables, []
    for name in _CHILDREN:
        sql = f"SELECT count(*) FROM langgraph_{name} WHERE thread NOT IN (SELECT id FROM langgraph_threads)"
        if count := await tables.fetch(sql, (), lambda rows: rows[0][0]):
            wrong.append(f"{count} rows of langgraph_{name} have no thread")
    threads = "thread IN (SELECT id FROM langgraph_threads WHERE thread_id LIKE 'pruned-%')"
    values = await tables.fetch(
        f"SELECT value FROM langgraph_values WHERE kind = '{LIST}' AND {threads}", (), list
    )
    needed = sum(ranges_.length(from_bytes(bytes(value))) for (value,) in values)
    stored = await tables.fetch(
        f"SELECT count(*) FROM langgraph_items WHERE {threads}", (), lambda rows: rows[0][0]
    )
    if stored != needed:
        wrong.append(f"{stored} items are stored in pruned threads, and {needed} are needed")
    return wrong
