"""One memory: all entries of an agent about a user."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from ..memory import Memory, MemoryOutline
from .description import Key, Operation, OwnerId, Route, Time


@dataclass(frozen=True)
class GetMemory(Operation[Memory | None]):
    """What an agent knows about a user, now or as it was known at a time."""

    route = Route(
        "GET",
        "/v1/memories/of",
        "memories.of",
        "Read the memory of an agent and a user",
        codes=("not_found",),
    )

    agent_id: OwnerId
    user_id: OwnerId
    _: KW_ONLY
    as_of: Annotated[Time | None, "The memory as known at this time."] = None


@dataclass(frozen=True)
class GetMemoryById(Operation[Memory | None]):
    """The memory with this id, now or as it was known at a time."""

    route = Route("GET", "/v1/memories/{memory_id}", "memories.get", "Read a memory", codes=("not_found",))

    memory_id: Key
    _: KW_ONLY
    as_of: Annotated[Time | None, "The memory as known at this time."] = None


@dataclass(frozen=True)
class GetMemoryOutline(Operation[MemoryOutline | None]):
    """A memory without its entries, as in the list of memories."""

    memory_id: Key
