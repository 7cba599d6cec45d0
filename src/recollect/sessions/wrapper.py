"""A session around another: passes everything through, for subclasses to override what they change."""

import inspect
from functools import cached_property
from typing import Any

from .protocol import Items, Session, SessionABC, own_method
from .settings import settings_of


class SessionWrapper(SessionABC):
    """The base of sessions that wrap another. It closes the session it wraps when it is closed itself."""

    keeps_abilities = True
    _own_id: str | None = None

    def __init__(self, session: Session) -> None:
        self.wrapped = session
        self.session_settings = settings_of(getattr(session, "session_settings", None))
        self._closed = False

    @property
    def session_id(self) -> str:
        """The wrapped session's, which may be known only after its first call; or one that was set."""
        return self.wrapped.session_id if self._own_id is None else self._own_id

    @session_id.setter
    def session_id(self, session_id: str) -> None:
        self._own_id = session_id

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first; with a limit the newest of them."""
        return await self.wrapped.get_items(self._effective_limit(limit))

    async def add_items(self, items: Items) -> None:
        """Append a batch, whole or not at all."""
        self._check_open()
        await self.wrapped.add_items(items)

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none."""
        self._check_open()
        return await self.wrapped.pop_item()

    async def clear_session(self) -> None:
        """Remove all items and the session itself."""
        self._check_open()
        await self.wrapped.clear_session()

    async def aclose(self) -> None:
        """Close this session and the one it wraps."""
        if self._closed:
            return
        self._closed = True
        close = getattr(self.wrapped, "aclose", None) or getattr(self.wrapped, "close", None)
        outcome = close() if close is not None else None
        if inspect.isawaitable(outcome):
            await outcome

    async def begin_run(self, wrapper: Any) -> None:
        """Pass the context of a run to the wrapped session, as `begin_run` of this module does."""
        await begin_run(self.wrapped, wrapper)

    def _context(self, wrapper: Any) -> dict[str, Any]:
        """The Runner's context as an argument, where there is one and the wrapped session takes it."""
        return {} if wrapper is None or not self._takes_context else {"wrapper": wrapper}

    @cached_property
    def _takes_context(self) -> bool:
        return takes_context(self.wrapped)


async def begin_run(session: Session, wrapper: Any) -> None:
    """Give a session the context of a run before the run reads its items by other means than `get_items`.

    A session without `begin_run` takes the context only as an argument of `get_items`. Such a session gets a
    call that reads no items.
    """
    begin = own_method(session, "begin_run")
    if begin is not None:
        await begin(wrapper)
    elif wrapper is not None and takes_context(session):
        read: Any = session.get_items
        await read(0, wrapper=wrapper)


def takes_context(session: Session) -> bool:
    """Whether all four methods take the Runner's context: the Agents SDK passes it to all or to none."""
    methods = (session.get_items, session.add_items, session.pop_item, session.clear_session)
    return all("wrapper" in inspect.signature(method).parameters for method in methods)
