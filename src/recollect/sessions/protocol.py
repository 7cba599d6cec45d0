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
    # Notes hold summaries of what was read.
    "get_note": _READING,
    "set_note": _READING,
}


def bypassed_override(session: object, ability: str) -> str | None:
    """The overridden method that an ability of the session would bypass, `None` if there is none.

    A class that sets `keeps_abilities = True` in its own body states that its overrides may be bypassed.
    """
    overriding = _defined_above(session, ability)
    methods = _BYPASSED_BY.get(ability, ())
    return next((method for method in methods if any(method in names for names in overriding)), None)


def _defined_above(session: object, name: str) -> list[Mapping[str, object]]:
    """The attributes of the object and of its classes, up to the class that defines a name."""
    own = getattr(session, "__dict__", {})
    if name in own:
        return []
    classes = takewhile(lambda each: name not in vars(each), type(session).__mro__)
    return [own, *(vars(each) for each in classes if not vars(each).get("keeps_abilities", False))]


# Items are plain dicts. In signatures they are `Any`, so that type checkers take our sessions where the
# Agents SDK asks for one of its own.
Items: TypeAlias = list[Any]
SessionInputCallback: TypeAlias = Callable[[Items, Items], Items | Awaitable[Items]]


if TYPE_CHECKING:  # for type checkers it is the SDK's own type
    from agents import items as _sdk

    TResponseInputItem: TypeAlias = _sdk.TResponseInputItem
else:
    TResponseInputItem = Item
    """An item, under the name that the Agents SDK has for it."""


@runtime_checkable
class Session(Protocol):
    """A conversation's history: what the Agents SDK's Runner asks of a session."""

    session_id: str
    session_settings: Any = None

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first; with a limit the newest of them."""
        ...

    async def add_items(self, items: Items) -> None:
        """Append a batch, whole or not at all."""
        ...

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none."""
        ...

    async def clear_session(self) -> None:
        """Remove all items and the session itself."""
        ...


if TYPE_CHECKING:  # some wrappers of the SDK ask for its own base class by name
    from agents.memory.session import SessionABC as _Base
else:
    _Base = ABC


class SessionABC(_Base):
    """The base of our sessions: settings, and closing once."""

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
        """All items, oldest first; with a limit the newest of them."""

    @abstractmethod
    async def add_items(self, items: Items) -> None:
        """Append a batch, whole or not at all."""

    @abstractmethod
    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none."""

    @abstractmethod
    async def clear_session(self) -> None:
        """Remove all items and the session itself."""

    async def aclose(self) -> None:
        """Release what the session holds. Closing twice is harmless."""
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


# --- Abilities: what not every backend has -----------------------------------------------------------


class PositionedItem(NamedTuple):
    """An item and where it stands; later items have higher positions, and gaps are normal."""

    position: int
    item: Item


@dataclass(frozen=True)
class SessionMetadata:
    """Whose session it is and what to call it, beside the items."""

    user_id: str | None = None
    agent_id: str | None = None
    title: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


def check_metadata(metadata: SessionMetadata) -> SessionMetadata:
    """The metadata, if its texts can be stored anywhere. `data` may hold anything that JSON can."""
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
    """A page of a listing, and the cursor of the next one, `None` on the last."""

    sessions: list[SessionInfo]
    next_cursor: str | None


class Rewritable(Protocol):
    """A history that can be replaced in one atomic step."""

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history by what the pure function `change` makes of it; nobody comes in between."""
        ...

    async def replace_items(self, items: Items) -> None:
        """Replace the history by these items."""
        ...

    async def revise_items(self, change: Callable[[list[Item]], list[Item | None]]) -> None:
        """Change stored items where they stand: `change` is pure, and gives for each what it becomes.

        `None` removes it. Whatever the session stores is revised, also what a read would not show. Notes are
        emptied: they may tell of what was there.
        """
        ...


class PopsChecked(Protocol):
    """A history whose newest item can be looked at before it is removed, in one atomic step."""

    async def pop_checked(self, accept: Callable[[Item], bool]) -> Any:
        """Remove the newest item and return it, if `accept` says yes; if no, remove it and go on to the next.

        Where `accept` raises, its error is raised, and nothing was removed.
        """
        ...


class Positioned(Protocol):
    """A history that can be read in parts."""

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """The first `limit` items after a position (0: from the start), oldest first."""
        ...

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """The last `limit` items before a position (`None`: from the end), oldest first."""
        ...


class AppendsOnce(Protocol):
    """A history that recognises a batch it has already taken."""

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one of this id was appended before; says whether it was appended now."""
        ...


class Described(Protocol):
    """A session that can carry metadata."""

    async def get_metadata(self) -> SessionMetadata:
        """The metadata; empty where none was set."""
        ...

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata, and make the session if it is not there."""
        ...


@dataclass(frozen=True)
class Note:
    """Something kept beside a history, such as how much of it a summary covers."""

    version: int
    """Counts the times it was set, from 1."""
    data: Mapping[str, Any]


class Noted(Protocol):
    """A session that keeps small notes beside its items. They go when it is cleared."""

    async def get_note(self, key: str) -> Note | None:
        """The note of this key, `None` where there is none."""
        ...

    async def set_note(self, key: str, data: Mapping[str, Any], version: int) -> bool:
        """Set a note that still has this version (0: that is not there yet); `False` if it has another."""
        ...


class Leasable(Protocol):
    """A session that one owner at a time can hold, across processes."""

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease; `False` while another owner's runs."""
        ...

    async def drop_lease(self, owner: str) -> None:
        """Give the lease up, if it is this owner's."""
        ...


AbilityT = TypeVar("AbilityT")


def require_ability(session: object, ability: type[AbilityT]) -> AbilityT:
    """The session as something with the ability; `MissingAbilityError` if the session lacks it."""
    missing = [name for name in _methods_of(ability) if own_method(session, name) is None]
    if missing:
        inherited = [name for name in missing if hasattr(session, name)]
        bypassed = bypassed_override(session, inherited[0]) if inherited else None
        raise MissingAbilityError(session, ability.__name__, missing, bypassed)
    return cast(AbilityT, session)


def with_ability(session: object, ability: type[AbilityT]) -> AbilityT | None:
    """The session as something with the ability, `None` if it has it not."""
    has_all = all(own_method(session, name) for name in _methods_of(ability))
    return cast(AbilityT, session) if has_all else None


def own_method(session: object, name: str) -> Callable[..., Any] | None:
    """A method of the session, `None` if it is missing or would bypass what the session overrides.

    Wrappers of other projects may pass unknown names on to the session inside. Around encryption, such a
    method would store contents in clear. So would an inherited one under an overridden `add_items`.
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
