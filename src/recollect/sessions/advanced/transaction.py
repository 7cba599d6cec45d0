"""Transactions on an advanced session, for callers that combine its steps with steps of their own."""

import json
from collections.abc import Mapping
from typing import Any

from ...items import encode_items
from ...sql.scripts import MakeScript, Row, Script, Statement, T
from .scripts import Place
from .session import AdvancedSession

_LAST_ITEM = 'SELECT coalesce(max(id), 0) FROM "{}" WHERE session_id = ?1'
_ITEMS_AFTER = 'SELECT id, message_data FROM "{}" WHERE session_id = ?1 AND id > ?2 ORDER BY id'


class SessionTransaction:
    """The steps of a transaction on one session. Each step is a script, and `run` runs a script of steps.

    A caller that changes anything takes the lock first.
    """

    def __init__(self, session: AdvancedSession) -> None:
        self._session = session
        self._table = session._queries.tables.messages

    async def run(self, make_script: MakeScript[T]) -> T:
        """Run a script as one transaction."""
        return await self._session._write(make_script)

    async def read_place(self) -> Place:
        """The current branch with its newest user turn, and the id of its newest item."""
        await self._session._scope()  # adopts the items that no branch shows
        query = self._session._branch_queries.place
        return await self._session._engine.fetch(query, (self._session.session_id,), _place_from)

    def lock(self, make: bool = False) -> Script[bool]:
        """Lock the session; `False` if there is none. `make` creates it."""
        return self._session._lock(make)

    def append(self, encoded: list[str]) -> Script[None]:
        """Append items that are encoded as JSON to the current branch."""
        return self._session._append(encoded)

    def last_item_id(self) -> Script[int]:
        """The id of the newest item of all branches; 0 if there is none."""
        ((item_id,),) = yield Statement(_LAST_ITEM.format(self._table), (self._session.session_id,))
        return int(item_id)

    def items_after(self, position: int) -> Script[list[Row]]:
        """The ids and stored texts of the items of all branches after a position, oldest first."""
        return (yield Statement(_ITEMS_AFTER.format(self._table), (self._session.session_id, position)))

    def current_branch(self) -> Script[str]:
        """The name of the current branch."""
        _, branch = yield from self._session._scope_within()
        return str(branch)

    def branch_off(self, turn: int, name: str | None) -> Script[str]:
        """Make a branch of all items before a user turn, make it current, and return its name."""
        return self._session._branch_off(turn, name)

    def remove_after(self, branch: str, position: int) -> Script[None]:
        """Remove the items after a position from a branch."""
        return self._session._remove_after((self._session.session_id, branch), position)

    def read_data(self) -> Script[dict[str, Any]]:
        """The `data` of the metadata; those that a new session will get, if there is none yet."""
        session = self._session
        rows: list[Row] = yield Statement(session._queries.get_metadata, (session.session_id,))
        stored = rows[0][3] if rows else (session._new_metadata or (None, None, None, "{}"))[3]
        data: dict[str, Any] = json.loads(stored)
        return data

    def write_data(self, data: Mapping[str, Any]) -> Script[None]:
        """Replace the `data` of the metadata."""
        user_id, agent_id, title, _ = self._session._new_metadata or (None, None, None, "")
        (encoded,) = encode_items([dict(data)])
        yield from self._session._describe((user_id, agent_id, title, encoded))


def _place_from(rows: list[Row]) -> Place:
    return Place(*rows[0])
