"""Threads as people see them: their branches, and their steps with what each one changed. Read-only.

Of a list only the items that a step added are read, so a page of a long thread is small.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ...items import Item
from ...sql.scripts import Row
from ..langchain.messages import messages_to_items
from . import ranges as ranges_
from .branches import Branch, Node, find_branches
from .known import KnownCheckpoints
from .loading import Loader
from .place import CheckpointPlace, check_thread_id
from .ranges import Ranges, from_bytes
from .reading import (
    Found,
    StoredWrite,
    Version,
    found_from,
    item_parameters,
    items_from,
    items_query,
    versions_of,
)
from .threads import ThreadList
from .values import EMPTY, LIST, SNAPSHOT, Encoded, decode

MESSAGES = "messages"
"""The channel whose items are shown as messages."""
_LONGEST = 2000  # characters of a value that is shown
_READABLE = ("msgpack", "json", "null", "bytes", "bytearray")
"""Kinds that can be read without the serializer of the program that wrote them."""
_INTERNAL = ("__", "branch:to:", "join:")  # channels with which LangGraph steers itself

_NODES = (
    "SELECT c.checkpoint_id, c.parent_id FROM langgraph_threads t JOIN langgraph_checkpoints c"
    " ON c.thread = t.id WHERE t.thread_id = ?1 AND t.checkpoint_ns = ?2 ORDER BY c.checkpoint_id"
)
_OWNERS = "SELECT checkpoint_ns, user_id FROM langgraph_threads WHERE thread_id = ?1 ORDER BY checkpoint_ns"
_STEPS = (
    "SELECT t.id, t.generation, t.thread_id, t.checkpoint_ns, c.checkpoint_id, c.parent_id,"
    " c.kind, c.checkpoint, c.metadata_kind, c.metadata"
    " FROM langgraph_threads t JOIN langgraph_checkpoints c ON c.thread = t.id"
    " WHERE t.thread_id = ?1 AND t.checkpoint_ns = ?2 AND c.checkpoint_id IN ({})"
)


@dataclass(frozen=True)
class ThreadOutline:
    """A thread with its namespaces, and the branches of one of them."""

    thread_id: str
    user_id: str | None
    namespace: str
    namespaces: Sequence[str]
    branches: Sequence[Branch]


class Change(NamedTuple):
    """A channel that a step changed, and its new value as text, or the items that were added."""

    channel: str
    text: str


@dataclass(frozen=True)
class Step:
    """A checkpoint: the messages that it added, and what else changed."""

    checkpoint_id: str
    parent_id: str | None
    is_readable: bool
    """Whether it can be shown: not if the program that wrote it encrypts it."""
    number: int | None = None
    source: str | None = None
    created_at: str | None = None
    nodes: Sequence[str] = ()
    """The nodes of the graph that ran."""
    items: Sequence[Item] = ()
    removed: int = 0
    """How many messages are gone."""
    changes: Sequence[Change] = ()
    interrupts: Sequence[str] = ()
    """What the graph asks a person before it goes on, unless that was answered."""
    errors: Sequence[str] = ()


@dataclass(frozen=True)
class _Checkpoint:
    """A decoded row."""

    found: Found
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]
    versions: set[Version] = field(default_factory=set)


class ThreadViewer:
    """Reads threads of a database to show them."""

    def __init__(self, tables: ThreadList) -> None:
        self._tables = tables
        self._serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        self._loader = Loader(tables, self._serde, KnownCheckpoints())

    async def outline(self, thread_id: str, namespace: str = "") -> ThreadOutline | None:
        """A thread, and the branches of a namespace. `None` if there is no such thread."""
        if not await self._tables.exist():
            return None
        owners = await self._tables.fetch(_OWNERS, (check_thread_id(thread_id),), list[Row])
        if not owners:
            return None
        nodes = await self._tables.fetch(_NODES, (thread_id, namespace), _nodes_from)
        user = next((user for _, user in owners if user is not None), None)
        return ThreadOutline(thread_id, user, namespace, [name for name, _ in owners], find_branches(nodes))

    async def steps(self, place: CheckpointPlace, checkpoint_ids: Sequence[str]) -> list[Step]:
        """Some steps of a thread, in the given order. Those that were removed meanwhile are left out."""
        rows = await self._read(place, checkpoint_ids)
        parents = {row.parent_id for row in rows.values() if row.parent_id} - rows.keys()
        around = rows | await self._read(place, sorted(parents))
        decoded = {name: self._decode(found) for name, found in around.items() if _is_readable(found)}
        shown = [rows[name] for name in checkpoint_ids if name in rows]
        if not shown:
            return []
        thread = shown[0].basis.thread
        versions = set().union(*(each.versions for each in decoded.values()))
        values = await self._loader.read_values(thread, versions)
        writes = await self._loader.read_writes(thread, [found.place.checkpoint_id or "" for found in shown])
        return [
            await self._step(
                found, decoded, values, writes.by_checkpoint.get(found.place.checkpoint_id or "", ())
            )
            for found in shown
        ]

    async def _step(
        self,
        found: Found,
        decoded: Mapping[str, _Checkpoint],
        values: Mapping[Version, Encoded],
        pending: Sequence[StoredWrite],
    ) -> Step:
        name = found.place.checkpoint_id or ""
        if name not in decoded:
            return Step(name, found.parent_id, is_readable=False)
        difference = _Difference(decoded[name], decoded.get(found.parent_id or ""), values)
        thread = found.basis.thread
        added = {
            channel: await self._read_items(thread, channel, positions)
            for channel, positions in difference.added.items()
        }
        return self._describe(difference, added, pending)

    async def _read(self, place: CheckpointPlace, checkpoint_ids: Sequence[str]) -> dict[str, Found]:
        if not checkpoint_ids:
            return {}
        numbers = ", ".join(f"?{number + 3}" for number in range(len(checkpoint_ids)))
        rows = await self._tables.fetch(_STEPS.format(numbers), (*place[:2], *checkpoint_ids), found_from)
        return {found.place.checkpoint_id or "": found for found in rows}

    def _decode(self, found: Found) -> _Checkpoint:
        checkpoint = decode(self._serde, found.checkpoint)
        return _Checkpoint(
            found, checkpoint, decode(self._serde, found.metadata) or {}, versions_of(checkpoint)
        )

    async def _read_items(self, thread: int, channel: str, added: Ranges) -> list[Any]:
        stored: dict[int, Encoded] = {}
        for parameters in item_parameters(thread, channel, added):
            query = items_query((len(parameters) - 2) // 2)
            stored |= await self._tables.fetch(query, parameters, items_from)
        found = [stored[position] for position in ranges_.positions(added) if position in stored]
        return [decode(self._serde, each) if each.kind in _READABLE else None for each in found]

    def _describe(
        self, difference: "_Difference", items: Mapping[str, list[Any]], pending: Sequence[StoredWrite]
    ) -> Step:
        now, found = difference.now, difference.now.found
        said = items.get(MESSAGES, [])
        messages = [
            each for each in said if isinstance(each, BaseMessage) and not isinstance(each, RemoveMessage)
        ]
        others = {channel: added for channel, added in items.items() if channel != MESSAGES}
        others |= {channel: decode(self._serde, value) for channel, value in difference.values.items()}
        return Step(
            found.place.checkpoint_id or "",
            found.parent_id,
            is_readable=True,
            number=now.metadata.get("step"),
            source=now.metadata.get("source"),
            created_at=now.checkpoint.get("ts"),
            nodes=difference.nodes,
            items=messages_to_items(messages),
            removed=difference.removed,
            changes=[Change(channel, as_text(value)) for channel, value in sorted(others.items())],
            interrupts=self._texts(pending, "__interrupt__") if not _is_resumed(pending) else (),
            errors=self._texts(pending, "__error__"),
        )

    def _texts(self, pending: Sequence[StoredWrite], channel: str) -> list[str]:
        values = [
            decode(self._serde, each.value)
            for each in pending
            if each.channel == channel and each.value.kind in _READABLE
        ]
        parts = [part for value in values for part in (value if isinstance(value, list | tuple) else [value])]
        return [as_text(getattr(part, "value", part)) for part in parts]


class _Difference:
    """What a checkpoint has that the one before it has not."""

    def __init__(
        self, now: _Checkpoint, before: _Checkpoint | None, values: Mapping[Version, Encoded]
    ) -> None:
        self.now = now
        old = {} if before is None else dict(before.versions)
        seen = {} if before is None else before.checkpoint.get("versions_seen", {})
        self.nodes = [
            node
            for node, versions in now.checkpoint.get("versions_seen", {}).items()
            if versions != seen.get(node, {}) and not node.startswith("__")
        ]
        self.added: dict[str, Ranges] = {}
        self.values: dict[str, Encoded] = {}
        self.removed = 0
        for channel, version in sorted(now.versions):
            stored = values.get((channel, version))
            if stored is None or old.get(channel) == version or channel.startswith(_INTERNAL):
                continue
            if stored.kind in (LIST, SNAPSHOT):
                self._compare(channel, stored, values.get((channel, old.get(channel, ""))))
            elif stored.kind in _READABLE and stored.kind != EMPTY:
                self.values[channel] = stored

    def _compare(self, channel: str, stored: Encoded, old: Encoded | None) -> None:
        is_list = old is not None and old.kind in (LIST, SNAPSHOT)
        before = set(ranges_.positions(from_bytes(old.data))) if old is not None and is_list else set()
        after = ranges_.positions(from_bytes(stored.data))
        added = ranges_.of_positions([position for position in after if position not in before])
        if added:
            self.added[channel] = added
        if channel == MESSAGES:
            self.removed = len(before - set(after))


def _is_resumed(pending: Sequence[StoredWrite]) -> bool:
    return any(each.channel == "__resume__" for each in pending)


def _is_readable(found: Found) -> bool:
    return found.checkpoint.kind in _READABLE and found.metadata.kind in _READABLE


def _nodes_from(rows: list[Row]) -> list[Node]:
    return [Node(*row) for row in rows]


def as_text(value: object) -> str:
    """A value as a short text: JSON, and what has no JSON as Python shows it."""
    text = value if isinstance(value, str) else json.dumps(value, default=_plain, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _plain(value: object) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseMessage) else repr(value)
