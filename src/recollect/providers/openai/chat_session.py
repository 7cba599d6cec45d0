"""A session of a chat: an advanced one, that also knows what of the conversation's history it holds."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...items import Item, encode_items
from ...sessions.advanced.scripts import Place
from ...sessions.advanced.session import AdvancedSession
from ...sessions.advanced.sqlalchemy import AdvancedSQLAlchemySession
from ...sessions.advanced.sqlite import AdvancedSQLiteSession
from ...sessions.item_texts import encode_batch
from ...sessions.protocol import Items
from ...sessions.sql.dialects import queries_for
from ...sql.scripts import MakeScript, Row, Script, Statement
from .database.schema import SESSION_TABLES
from .failures import TurnLostError

_MIRRORED = "mirrored"
_BRANCHES = "branches"


class ChatSession(AdvancedSession):
    """What the sessions of chats share. What they know is part of their metadata, in one transaction with it.

    The messages of the conversation before the index `mirrored` are in the session, or need not be.
    """

    _is_held: MakeScript[bool] | None = None

    def write_only_while(self, is_held: MakeScript[bool]) -> None:
        """Refuse items, with a `TurnLostError`, once this is so no more: it is asked in their transaction.

        A run that has lost its conversation to another, and does not know it yet, writes nothing into that.
        """
        self._is_held = is_held

    async def known(self) -> dict[str, Any]:
        """What is stored beside the items; empty where there is no session yet."""
        return dict((await self.get_metadata()).data)

    async def mirrored(self) -> int:
        """The index of the first message of the conversation that the session does not have."""
        return int((await self.known()).get(_MIRRORED, 0))

    async def mirror(self, items: Items, first: int, after: int) -> bool:
        """Append the messages from `first` on, up to `after`, as items; `False` if that was done before."""
        return await self._write(partial(self._mirror, await encode_batch(items), first, after))

    async def create_branch(self, turn: int, name: str | None) -> str:
        """As `create_branch_from_turn`, and remember what it was made from."""
        return await self._write(partial(self._branch_off_noted, turn, name))

    async def place(self) -> Place:
        """Where the session stands: its current branch, the newest user turn of that, and the newest item."""
        await self._scope()  # items that no branch shows are taken into one
        place = self._branch_queries.place
        return await self._engine.fetch(place, (self.session_id,), lambda rows: Place(*rows[0]))

    async def undo_after(self, branch: str, position: int, end: MakeScript[bool]) -> bool:
        """Remove from a branch what stands after a position: a run that failed leaves nothing half done.

        `end` is done first, in the same transaction; where it says `False`, nothing is removed.
        """
        return await self._write(partial(self._undo_after, branch, position, end))

    def _append(self, encoded: list[str]) -> Script[None]:
        yield from self._check_held()
        yield from super()._append(encoded)

    def _pop(self, accept: Callable[[Item], bool] | None = None) -> Script[Item | None]:
        yield from self._check_held()
        return (yield from super()._pop(accept))

    def _check_held(self) -> Script[None]:
        if self._is_held is None:
            return
        yield from self._lock()  # so that whoever ends the run comes before this, or undoes it
        if not (yield from self._is_held()):
            raise TurnLostError

    def _mirror(self, encoded: list[str], first: int, after: int) -> Script[bool]:
        yield from self._lock(make=True)
        known = yield from self._known_within()
        if known.get(_MIRRORED, 0) != first:
            return False
        if encoded:
            yield from self._append(encoded)
        yield from self._know({**known, _MIRRORED: after})
        return True

    def _branch_off_noted(self, turn: int, name: str | None) -> Script[str]:
        yield from self._lock(make=True)
        _, source = yield from self._scope_within()
        branch = yield from self._branch_off(turn, name)
        known = yield from self._known_within()
        made_from = {**known.get(_BRANCHES, {}), branch: [source, turn]}
        yield from self._know({**known, _BRANCHES: made_from})
        return branch

    def _undo_after(self, branch: str, position: int, end: MakeScript[bool]) -> Script[bool]:
        if not (yield from end()):
            return False
        yield from self._lock()
        yield from self._remove_after((self.session_id, branch), position)
        return True

    def _known_within(self) -> Script[dict[str, Any]]:
        rows: list[Row] = yield Statement(self._queries.get_metadata, (self.session_id,))
        stored = rows[0][3] if rows else (self._new_metadata or (None, None, None, "{}"))[3]
        known: dict[str, Any] = json.loads(stored)
        return known

    def _know(self, known: Mapping[str, Any]) -> Script[None]:
        user_id, agent_id, title, _ = self._new_metadata or (None, None, None, "")
        (data,) = encode_items([dict(known)])
        yield from self._describe((user_id, agent_id, title, data))


class ChatSQLiteSession(ChatSession, AdvancedSQLiteSession):
    """The session of a chat in a SQLite file."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Tables of structure and usage under names of their own: the fixed ones may be those of others.
        self._queries = queries_for("sqlite", SESSION_TABLES)
        self._reads = self._reads_of(self._queries)


class ChatSQLAlchemySession(ChatSession, AdvancedSQLAlchemySession):
    """The session of a chat on a database server."""


def made_from(known: Mapping[str, Any], branch: str) -> tuple[str | None, int | None]:
    """The branch and the turn that a branch was made from, as far as that is known."""
    source, turn = known.get(_BRANCHES, {}).get(branch, (None, None))
    return source, turn
