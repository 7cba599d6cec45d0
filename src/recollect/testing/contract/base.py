"""The settings of a contract test: how to open the session, and what it supports."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ...sessions.protocol import Session, with_ability
from .tools import close

TestT = TypeVar("TestT", bound=Callable[..., Any])


class ContractBase:
    """How to open a session, and what it does not support."""

    shared = True
    """Whether two sessions with the same id, opened one after the other, see the same items."""

    atomic = True
    """Whether a batch is stored completely or not at all."""

    abilities: tuple[type, ...] = ()
    """Protocols that the session must have. Other protocols that it has are tested too."""

    async def open_session(self, session_id: str) -> Session:
        """Open a session with this id. Within one test, always use the same store."""
        raise NotImplementedError

    async def store_corrupt(self, session: Any) -> bool:  # noqa: ARG002 - for overrides
        """Store a corrupt entry without using the session. Return `False` if that is not possible."""
        return False


def needs(ability: type) -> Callable[[TestT], TestT]:
    """Run a test only on sessions that have an ability."""

    def decorate(test: TestT) -> TestT:
        @functools.wraps(test)
        async def guarded(self: ContractBase, *args: Any, **kwargs: Any) -> None:
            session = await self.open_session("ability")
            has = with_ability(session, ability) is not None
            await close(session)
            assert has or ability not in self.abilities, f"the session is not {ability.__name__}"
            if has:
                await test(self, *args, **kwargs)

        return cast(TestT, guarded)

    return decorate
