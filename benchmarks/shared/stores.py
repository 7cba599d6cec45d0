"""Who is compared, behind one small face: open a store, make sessions in it, close them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias


class Session(Protocol):
    """What is measured of a session."""

    def get_items(self, limit: int | None = None) -> Awaitable[list[Any]]:
        """All items, or the newest."""
        ...

    def add_items(self, items: list[Any]) -> Awaitable[None]:
        """Append."""
        ...

    def pop_item(self) -> Awaitable[Any]:
        """Remove the newest."""
        ...

    def clear_session(self) -> Awaitable[None]:
        """Remove all."""
        ...


class Store(Protocol):
    """A file, a database or a server as a contender uses it."""

    def session(self, session_id: str) -> Session:
        """Make a session, as an application does for a request."""
        ...

    async def close_session(self, session: Any) -> None:
        """Close one."""
        ...

    async def close(self) -> None:
        """Let go of the store after the last."""
        ...


OpenStore: TypeAlias = Callable[[str, Mapping[str, int]], AbstractAsyncContextManager[Store]]
"""Opens a store as a contender does, with so many items for each session id. Nobody else has it."""

Setting: TypeAlias = Callable[[], AbstractAsyncContextManager[OpenStore]]
"""What lasts as long as a measure: for instance a server that all contenders use."""


def check_read(contender: str, items: list[Any], expected: int) -> None:
    """Nobody wins by reading less than all."""
    if len(items) != expected:
        raise AssertionError(f"{contender} read {len(items)} items and not {expected}")


@asynccontextmanager
async def closed_afterwards(store: Store) -> AsyncIterator[Store]:
    """A store that is let go in the end."""
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def live_session(store: Store, session_id: str) -> AsyncIterator[Session]:
    """A session that has been used once, so that what opening costs is not counted; closed afterwards."""
    session = store.session(session_id)
    try:
        await session.get_items(1)
        yield session
    finally:
        await store.close_session(session)


def short(size: int) -> str:
    """A size as in `10k`."""
    return f"{size // 1000}k" if size >= 1000 and size % 1000 == 0 else str(size)
