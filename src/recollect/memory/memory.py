"""Memories: all entries of one agent about one user, as four lists of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from ..errors import InvalidTypeError, InvalidValueError
from ..ids import new_id
from .conversation import check_key, check_owner
from .entry import CONTENT_TYPES, ContentType
from .times import format_time, now, read_time


@dataclass(frozen=True)
class MemoryOutline:
    """A memory without its entries."""

    memory_id: str
    agent_id: str
    user_id: str
    created_at: datetime
    updated_at: datetime
    version: int
    counts: Mapping[ContentType, int]
    """The number of current entries, by type."""

    def to_dict(self) -> dict[str, Any]:
        """The outline as a JSON object."""
        times = {"created_at": format_time(self.created_at), "updated_at": format_time(self.updated_at)}
        return {**vars(self), **times, "counts": dict(self.counts)}


@dataclass(frozen=True)
class UserOutline:
    """A user with stored data."""

    user_id: str
    memory_count: int
    """The number of memories of the user: one for each agent."""
    created_at: datetime
    """When the first memory was created."""
    updated_at: datetime
    """When a memory last changed."""
    position: str = field(repr=False)
    """The position in the list of users, for the page after it."""

    def to_dict(self) -> dict[str, Any]:
        """The outline as a JSON object."""
        return {
            "user_id": self.user_id,
            "memory_count": self.memory_count,
            "created_at": format_time(self.created_at),
            "updated_at": format_time(self.updated_at),
        }


@dataclass(init=False)
class Memory:
    """All that an agent remembers about a user.

    `data` holds the lists under `profile_content`, `event_content`, `mind_content` and
    `instruction_content`, or under the short names `profile`, `event`, `mind` and `instruction`.
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
    instruction_content: list[str] = field(repr=False)

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
        self.memory_id = check_key("memory_id", memory_id) or new_id()
        self.created_at = read_time("created_at", created_at) or now()
        self.updated_at = read_time("updated_at", updated_at) or self.created_at
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise InvalidValueError("version must be a whole number of at least 1")
        self.version = version
        self._take({} if data is None else data)

    def _take(self, data: Mapping[str, Any]) -> None:
        if not isinstance(data, Mapping):
            raise InvalidTypeError(f"data must be an object, not {type(data).__name__}")
        known = {name for kind in CONTENT_TYPES for name in (kind, f"{kind}_content")}
        if unknown := sorted(map(str, data.keys() - known)):
            raise InvalidValueError(f"data has unknown fields: {', '.join(unknown)}")
        for kind in CONTENT_TYPES:
            name = f"{kind}_content"
            given = data.get(name, data.get(kind))
            setattr(self, name, read_texts(name, given))

    def to_dict(self) -> dict[str, Any]:
        """The memory as a JSON object. `instruction_content` is left out if it is empty."""
        return {
            "memory_id": self.memory_id,
            "agent_id": self.agent_id,
            "user_id": self.user_id,
            "created_at": format_time(self.created_at),
            "updated_at": format_time(self.updated_at),
            "version": self.version,
            **lists_of({kind: getattr(self, f"{kind}_content") for kind in CONTENT_TYPES}),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """A memory from a JSON object."""
        if not isinstance(given, Mapping):
            raise InvalidTypeError(f"a memory must be an object, not {type(given).__name__}")
        names = [name for kind in CONTENT_TYPES for name in (f"{kind}_content", kind)]
        return cls(
            agent_id=given.get("agent_id", ""),
            user_id=given.get("user_id", ""),
            data={name: given[name] for name in names if name in given},
            memory_id=given.get("memory_id"),
            created_at=given.get("created_at"),
            updated_at=given.get("updated_at"),
            version=given.get("version", 1),
        )


def lists_of(texts: Mapping[ContentType, Sequence[str]]) -> dict[str, list[str]]:
    """The lists of a memory in its JSON object, which has `instruction_content` only if it is not empty."""
    return {
        f"{kind}_content": list(texts.get(kind, ()))
        for kind in CONTENT_TYPES
        if kind != "instruction" or texts.get(kind)
    }


def read_texts(name: str, given: object) -> list[str]:
    """Parse a list of texts. A single text is split into its lines."""
    if given is None:
        return []
    texts: object = given.splitlines() if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or isinstance(texts, bytes):
        raise InvalidTypeError(f"{name} must be a list of texts, not {type(given).__name__}")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidTypeError(f"{name} must hold texts, not {type(text).__name__}")
    return [text for text in texts if text.strip()]
