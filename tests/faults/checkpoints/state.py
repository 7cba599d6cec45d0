"""The states that are stored: each checkpoint says by a digest what its values must be."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.base.id import uuid6

CHANNEL = "messages"
Item = dict[str, Any]


class Operation(msgspec.Struct, frozen=True):
    """What a client is about to do to a thread."""

    do: str
    thread: str
    checkpoint_id: str = ""
    to: str = ""
    """The thread that a copy makes."""
    text: str = ""
    """What a task wrote."""


def config_of(thread: str, checkpoint_id: str | None = None) -> RunnableConfig:
    """The config of a thread, or of one checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}}


def new_checkpoint(items: Sequence[Item], version: str) -> Any:
    """A checkpoint with these items."""
    return {
        "v": 4,
        "id": str(uuid6()),
        "ts": "2026-11-17T10:00:00+00:00",
        "channel_values": {CHANNEL: list(items), "count": len(items)},
        "channel_versions": {CHANNEL: version, "count": version},
        "versions_seen": {},
    }


def metadata_of(items: Sequence[Item]) -> Any:
    """The metadata, with the digest."""
    return {"source": "loop", "step": len(items), "parents": {}, "digest": digest(items)}


def digest(items: Sequence[Item]) -> str:
    """A text that is the same for the same items alone."""
    return hashlib.sha256(json.dumps(list(items), sort_keys=True).encode()).hexdigest()[:16]


def wrong_with(found: CheckpointTuple) -> str | None:
    """Why a checkpoint is not whole; `None` if it is."""
    values: Any = found.checkpoint["channel_values"]
    metadata: Any = found.metadata
    if digest(values.get(CHANNEL, [])) != metadata["digest"]:
        return "a checkpoint has other items than were stored with it"
    if values.get("count") != len(values.get(CHANNEL, [])):
        return "the channels of a checkpoint are of different steps"
    return None
