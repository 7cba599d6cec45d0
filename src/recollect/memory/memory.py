"""A memory: what one agent knows about one user, as three lists of texts."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from ..errors import InvalidTypeError, InvalidValueError
from .conversation import check_key, check_owner
from .entry import CONTENT_TYPES, ContentType
from .times import format_time, now, read_time


@dataclass(frozen=True)
class MemoryOutline:
    """What is told about a memory without what it holds."""

    memory_id: str
    agent_id: str
    user_id: str
    created_at: datetime
    updated_at: datetime
    version: int
    counts: Mapping[ContentType, int]
    """How many entries it tells, by their type."""

    def to_dict(self) -> dict[str, Any]:
        """The outline as JSON tells it."""
        times = {"created_at": format_time(self.created_at), "updated_at": format_time(self.updated_at)}
        return {**vars(self), **times, "counts": dict(self.counts)}


@dataclass(frozen=True)
class UserOutline:
    """A user of whom something is stored."""

    user_id: str
    memory_count: int
    """Memories of the user: one for each agent."""
    created_at: datetime
    """When the first memory was made."""
    updated_at: datetime
    """When a memory last changed."""
    position: str = field(repr=False)
    """The place in the list of users, for the page after it."""

    def to_dict(self) -> dict[str, Any]:
        """The outline as JSON tells it."""
        return {
            "user_id": self.user_id,
            "memory_count": self.memory_count,
            "created_at": format_time(self.created_at),
            "updated_at": format_time(self.updated_at),
        }


@dataclass(init=False)
class Memory:
    """What an agent knows about a user.

    `data` holds the lists under `profile_content`, `event_content` and `mind_content`, or under the short
    names `profile`, `event` and `mind`.
    """

    agent_id: str
    user_id: str
    memory_id: str
    created_at: datetime
    updated_at: datetime
    version: int
    profile_content: list[str] = field(repr=False)
    event_content: list[str] = field(repr=False)
    mind_content: list[str] = field(repr=False)

    def __init__(
        self,
        agent_id: str = "",
        user_id: str = "",
        data: Mapping[str, Any] | None = None,
        memory_id: str | None = None,
        created_at: datetime | str | None = None,
        updated_at: datetime | str | None = None,
        version: int = 1,
    ) -> None:
        self.agent_id = check_owner("agent_id", agent_id)
        self.user_id = check_owner("user_id", user_id)
        self.memory_id = check_key("memory_id", memory_id) or str(uuid.uuid4())
        self.created_at = read_time("created_at", created_at) or now()
        self.updated_at = read_time("updated_at", updated_at) or self.created_at
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise InvalidValueError("version must be a whole number from 1 on")
        self.version = version
        self._take({} if data is None else data)

    def _take(self, data: Mapping[str, Any]) -> None:
        if not isinstance(data, Mapping):
            raise InvalidTypeError(f"data must be an object, not {type(data).__name__}")
        known = {name for kind in CONTENT_TYPES for name in (kind, f"{kind}_content")}
        if unknown := sorted(map(str, data.keys() - known)):
            raise InvalidValueError(f"data has fields that are not kept: {', '.join(unknown)}")
        for kind in CONTENT_TYPES:
            name = f"{kind}_content"
            given = data.get(name, data.get(kind))
            setattr(self, name, read_texts(name, given))

    def to_dict(self) -> dict[str, Any]:
        """The memory as JSON tells it."""
        return {
            "memory_id": self.memory_id,
            "agent_id": self.agent_id,
            "user_id": self.user_id,
            "created_at": format_time(self.created_at),
            "updated_at": format_time(self.updated_at),
            "version": self.version,
            **{f"{kind}_content": list(getattr(self, f"{kind}_content")) for kind in CONTENT_TYPES},
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """A memory from its JSON."""
        if not isinstance(told, Mapping):
            raise InvalidTypeError(f"a memory must be an object, not {type(told).__name__}")
        names = [name for kind in CONTENT_TYPES for name in (f"{kind}_content", kind)]
        return cls(
            agent_id=told.get("agent_id", ""),
            user_id=told.get("user_id", ""),
            data={name: told[name] for name in names if name in told},
            memory_id=told.get("memory_id"),
            created_at=told.get("created_at"),
            updated_at=told.get("updated_at"),
            version=told.get("version", 1),
        )


def read_texts(name: str, given: object) -> list[str]:
    """A list of texts; one text is read as its lines."""
    if given is None:
        return []
    texts: object = given.splitlines() if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or isinstance(texts, bytes):
        raise InvalidTypeError(f"{name} must be a list of texts, not {type(given).__name__}")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidTypeError(f"{name} must hold texts, not {type(text).__name__}")
    return [text for text in texts if text.strip()]
