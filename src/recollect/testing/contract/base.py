"""What every part of the contract is told about the session under test."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ...sessions.protocol import Session, with_ability
from .tools import close

TestT = TypeVar("TestT", bound=Callable[..., Any])


class ContractBase:
    """How a session is opened, and what it cannot do."""

    shared = True
    """Whether two sessions of the same id that are opened one after the other see the same items."""

    atomic = True
    """Whether a batch is stored whole or not at all."""

    abilities: tuple[type, ...] = ()
    """Protocols the session must have. Those it has beyond these are tested too."""

    async def open_session(self, session_id: str) -> Session:
        """A session of this id; for the length of a test always in the same store."""
        raise NotImplementedError

    async def store_corrupt(self, session: Any) -> bool:  # noqa: ARG002 - for those who can
        """Add an entry that is no item, behind the session's back; `False` where nobody can."""
        return False


def needs(ability: type) -> Callable[[TestT], TestT]:
    """Run a test only on sessions that have an ability; on others it has nothing to say."""

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
