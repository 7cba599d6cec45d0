"""Transactions on an advanced session, for callers that combine its steps with steps of their own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...items import encode_items
from ...sql.scripts import MakeScript, Row, Script, Statement, T, combine, run_all
from .scripts import BranchEnd
from .session import AdvancedSession
from .usage import RunProgress


class SessionTransaction:
    """The steps of a transaction on one session. Each step is a script, and `run` runs a script of steps.

    A caller that changes anything takes the lock first.
    """

    def __init__(self, session: AdvancedSession) -> None:
        self._session = session

    async def run(self, make_script: MakeScript[T]) -> T:
        """Run a script as one transaction."""
        return await self._session._write(make_script)

    def lock(self, make: bool = False) -> Script[bool]:
        """Lock the session; `False` if there is none. `make` creates it."""
        return self._session._lock(make)

    def place(self) -> Script[BranchEnd]:
        """The current branch, and the end of it."""
        return self._session._place()

    def append_items(self, encoded: list[str]) -> Script[list[int]]:
        """Append items that are encoded as JSON, and return their ids. `structure` adds them to a branch."""
        return self._session._append_items(encoded)

    def structure(self, place: BranchEnd, ids: list[int], encoded: list[str]) -> list[Statement]:
        """The change that adds items at the end of a branch."""
        return self._session._structure(place, zip(ids, encoded, strict=True))

    def cost(self, place: BranchEnd, run: RunProgress) -> Script[list[Statement]]:
        """The changes that add the cost of a run to the last turn of a branch."""
        return self._session._count_at(place, run)

    def apply(self, changes: Sequence[Statement]) -> Script[None]:
        """Make changes of different tables, in one statement where the database can do that."""
        is_one = self._session._queries.combines and len(changes) > 1
        yield from run_all([combine(changes)] if is_one else changes)

    def current_branch(self) -> Script[str]:
        """The name of the current branch."""
        _, branch = yield from self._session._scope_within()
        return str(branch)

    def branch_off(self, turn: int, name: str | None) -> Script[str]:
        """Make a branch of all items before a user turn, make it current, and return its name."""
        return self._session._branch_off(turn, name)

    def read_data(self) -> Script[dict[str, Any]]:
        """The `data` of the metadata; those that a new session will get, if there is none yet."""
        session = self._session
        rows: list[Row] = yield Statement(session._queries.get_metadata, (session.session_id,))
        stored = rows[0][3] if rows else (session._new_metadata or (None, None, None, "{}"))[3]
        data: dict[str, Any] = json.loads(stored)
        return data

    def write_data(self, data: Mapping[str, Any]) -> Script[None]:
        """Replace the `data` of the metadata. Creates the session if it is missing."""
        yield Statement(self._session._queries.touch_session, (self._session.session_id,))
        yield self.set_data(data)

    def set_data(self, data: Mapping[str, Any]) -> Statement:
        """The change that replaces the `data` of the metadata. The session must exist."""
        session = self._session
        user_id, agent_id, title, _ = session._new_metadata or (None, None, None, "")
        (encoded,) = encode_items([dict(data)])
        return Statement(
            session._queries.set_metadata, (session.session_id, user_id, agent_id, title, encoded)
        )
