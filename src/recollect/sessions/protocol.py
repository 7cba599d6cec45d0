"""The contract of every session, and the abilities that only some sessions have.

Each ability is a small protocol. An ability such as `add_batch` stores items without calling `add_items`. A
subclass that masks or encrypts items in its own `add_items` inherits that shortcut, and the shortcut would
store them in plain text. So an ability counts only if the class that defines it is at least as derived as the
classes that override the methods it bypasses (`bypassed_override`).
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast, runtime_checkable

from ..errors import InvalidValueError, MissingAbilityError, SessionClosedError
from ..items import Item
from ..text_checks import check_text
from .settings import SessionSettings, check_limit, limit_of, settings_of

_TEXTS = ("_serialize_item", "_deserialize_item")
_WRITING = ("add_items", *_TEXTS)
_READING = ("get_items", *_TEXTS)
_BYPASSED_BY: dict[str, Sequence[str]] = {
    "transform_items": _WRITING,
    "replace_items": _WRITING,
    "revise_items": _WRITING,
    "add_batch": ("add_items",),
    "pop_checked": ("pop_item", *_TEXTS),
    "begin_run": ("get_items",),
    "read_after": _READING,
    "read_before": _READING,
    # Notes contain summaries of the items that were read.
    "get_note": _READING,
    "set_note": _READING,
}


def bypassed_override(session: object, ability: str) -> str | None:
    """Return the overridden method that an ability of the session would bypass, or `None`.

    A class that sets `keeps_abilities = True` in its own body states that its overrides may be bypassed.
    """
    overriding = _defined_above(session, ability)
    methods = _BYPASSED_BY.get(ability, ())
    return next((method for method in methods if any(method in names for names in overriding)), None)


def _defined_above(session: object, name: str) -> list[Mapping[str, object]]:
    """The attributes of the object and its classes, up to the class that defines the name."""
    own = getattr(session, "__dict__", {})
    if name in own:
        return []
    classes = takewhile(lambda each: name not in vars(each), type(session).__mro__)
    return [own, *(vars(each) for each in classes if not vars(each).get("keeps_abilities", False))]


# Items are plain dicts. In signatures they are `Any`, so that type checkers accept our sessions where the
# Agents SDK expects one of its own.
Items: TypeAlias = list[Any]
SessionInputCallback: TypeAlias = Callable[[Items, Items], Items | Awaitable[Items]]


if TYPE_CHECKING:  # type checkers see the SDK's own type
    from agents import items as _sdk

    TResponseInputItem: TypeAlias = _sdk.TResponseInputItem
else:
    TResponseInputItem = Item
    """An item, under the name that the Agents SDK uses."""


@runtime_checkable
class Session(Protocol):
    """The history of a conversation, with the four methods that the Agents SDK's Runner calls."""

    session_id: str
    session_settings: Any = None

    async def get_items(self, limit: int | None = None) -> Items:
        """Return all items, oldest first, or with a limit only the newest ones."""
        ...

    async def add_items(self, items: Items) -> None:
        """Append a batch: all of its items or none."""
        ...

    async def pop_item(self) -> Any:
        """Remove and return the newest item, or return `None` if there is none."""
        ...

    async def clear_session(self) -> None:
        """Remove all items and the session itself."""
        ...


if TYPE_CHECKING:  # some wrappers of the SDK require its own base class
    from agents.memory.session import SessionABC as _Base
else:
    _Base = ABC


class SessionABC(_Base):
    """The base class of our sessions: settings and closing."""

    keeps_abilities = True
    session_id: str
    session_settings: Any = None

    def __init__(self, session_id: str, session_settings: Any = None) -> None:
        if not isinstance(session_id, str) or not session_id:
            raise InvalidValueError(f"session_id must be a non-empty string, not {session_id!r}")
        self.session_id = check_text("session_id", session_id)
        self.session_settings = settings_of(session_settings)
        self._closed = False

    @abstractmethod
    async def get_items(self, limit: int | None = None) -> Items:
        """Return all items, oldest first, or with a limit only the newest ones."""

    @abstractmethod
    async def add_items(self, items: Items) -> None:
        """Append a batch: all of its items or none."""

    @abstractmethod
    async def pop_item(self) -> Any:
        """Remove and return the newest item, or return `None` if there is none."""

    @abstractmethod
    async def clear_session(self) -> None:
        """Remove all items and the session itself."""

    async def aclose(self) -> None:
        """Release the resources of the session. Idempotent."""
        self._closed = True

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosedError(self.session_id)

    def _effective_limit(self, limit: int | None) -> int | None:
        self._check_open()
        return limit_of(self.session_settings) if limit is None else check_limit(limit)


# --- Abilities: what only some backends have ----------------------------------------------------------


class PositionedItem(NamedTuple):
    """An item and its position in the session. Later items have higher positions; gaps are normal."""

    position: int
    item: Item


@dataclass(frozen=True)
class SessionMetadata:
    """The owner and title of a session, stored beside its items."""

    user_id: str | None = None
    agent_id: str | None = None
    title: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


def check_metadata(metadata: SessionMetadata) -> SessionMetadata:
    """Return the metadata if every database can store its texts. `data` may contain any JSON."""
    for name in ("user_id", "agent_id", "title"):
        text = getattr(metadata, name)
        if text is not None:
            check_text(f"metadata.{name}", text)
    return metadata


@dataclass(frozen=True)
class SessionInfo:
    """A session in a listing."""

    session_id: str
    created_at: datetime | None
    updated_at: datetime | None
    item_count: int
    metadata: SessionMetadata


@dataclass(frozen=True)
class SessionPage:
    """A page of a listing, and the cursor of the next page (`None` on the last page)."""

    sessions: list[SessionInfo]
    next_cursor: str | None


class Rewritable(Protocol):
    """A history that can be replaced in one atomic step."""

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history by the result of the pure function `change`, in one atomic step."""
        ...

    async def replace_items(self, items: Items) -> None:
        """Replace the history by these items."""
        ...

    async def revise_items(self, change: Callable[[list[Item]], list[Item | None]]) -> None:
        """Change stored items in place. `change` is pure and returns the new item for each item, or `None`.

        `None` removes the item. All stored items are revised, also those that a read does not return. Notes
        are emptied, because they may repeat what the items contained.
        """
        ...


class PopsChecked(Protocol):
    """A history whose newest item can be inspected and removed in one atomic step."""

    async def pop_checked(self, accept: Callable[[Item], bool]) -> Any:
        """Remove and return the newest item that `accept` accepts. Newer items are removed too.

        If `accept` raises, the error is raised and nothing is removed.
        """
        ...


class Positioned(Protocol):
    """A history that can be read in parts."""

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """Return the first `limit` items after a position (0: from the start), oldest first."""
        ...

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """Return the last `limit` items before a position (`None`: from the end), oldest first."""
        ...


class AppendsOnce(Protocol):
    """A history that recognizes a batch it already contains."""

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one with this id was appended before. Return whether it was appended now."""
        ...


class Described(Protocol):
    """A session with metadata."""

    async def get_metadata(self) -> SessionMetadata:
        """Return the metadata, empty if none was set."""
        ...

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata, and create the session if it does not exist."""
        ...


@dataclass(frozen=True)
class Note:
    """A record beside a history, for example how much of it a summary covers."""

    version: int
    """How often the note was set, from 1."""
    data: Mapping[str, Any]


class Noted(Protocol):
    """A session that stores small notes beside its items. Clearing the session deletes them."""

    async def get_note(self, key: str) -> Note | None:
        """Return the note with this key, or `None`."""
        ...

    async def set_note(self, key: str, data: Mapping[str, Any], version: int) -> bool:
        """Set a note if it still has this version (0: it does not exist yet), else return `False`."""
        ...


class Leasable(Protocol):
    """A session with a lease that one owner at a time can hold, across processes."""

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease. Return `False` while another owner holds it."""
        ...

    async def drop_lease(self, owner: str) -> None:
        """Release the lease if this owner holds it."""
        ...


AbilityT = TypeVar("AbilityT")


def require_ability(session: object, ability: type[AbilityT]) -> AbilityT:
    """Return the session typed as the ability. Raise `MissingAbilityError` if the session lacks it."""
    missing = [name for name in _methods_of(ability) if own_method(session, name) is None]
    if missing:
        inherited = [name for name in missing if hasattr(session, name)]
        bypassed = bypassed_override(session, inherited[0]) if inherited else None
        raise MissingAbilityError(session, ability.__name__, missing, bypassed)
    return cast(AbilityT, session)


def with_ability(session: object, ability: type[AbilityT]) -> AbilityT | None:
    """Return the session typed as the ability, or `None` if the session lacks it."""
    has_all = all(own_method(session, name) for name in _methods_of(ability))
    return cast(AbilityT, session) if has_all else None


def own_method(session: object, name: str) -> Callable[..., Any] | None:
    """Return a method of the session, or `None` if it is missing or would bypass an override of the session.

    Wrappers of other projects may delegate unknown names to the session inside. Around encryption, such a
    method would store contents in plain text. So would an inherited method if `add_items` is overridden.
    """
    method = getattr(session, name, None)
    is_own = isinstance(session, SessionABC) or getattr(method, "__self__", session) is session
    return method if callable(method) and is_own and not bypassed_override(session, name) else None


def _methods_of(ability: type) -> list[str]:
    return [name for name in vars(ability) if not name.startswith("_")]


__all__ = [
    "AppendsOnce",
    "Described",
    "Items",
    "Leasable",
    "Note",
    "Noted",
    "PopsChecked",
    "Positioned",
    "PositionedItem",
    "Rewritable",
    "Session",
    "SessionABC",
    "SessionInfo",
    "SessionInputCallback",
    "SessionMetadata",
    "SessionPage",
    "SessionSettings",
    "TResponseInputItem",
    "own_method",
    "require_ability",
    "with_ability",
]
