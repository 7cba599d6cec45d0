"""A SQL session whose history has branches: list, create, switch, compare and delete them."""

import logging
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

from ...errors import InvalidValueError
from ...items import Item
from ...sql.scripts import Row
from ...text_checks import check_text
from ..protocol import Items
from .scripts import MAIN, BranchScripts, unknown

_LONGEST_NAME = 255
_LAST_TURN = 2**31 - 2  # the largest turn number, with room for one more in the column
_END = 2**62  # a position after all others


@dataclass(frozen=True)
class BranchDiff:
    """The comparison of two branches: their common start, and the items that only one of them has."""

    first: str
    second: str
    common_items: int
    common_turns: int
    """The number of complete turns that both share."""
    only_in_first: list[Item]
    only_in_second: list[Item]


class BranchingSession(BranchScripts):
    """The methods of a session with branches."""

    keeps_abilities = True

    _advanced = True
    _logger = logging.getLogger(__name__)

    # --- the contract, on a branch ---

    async def get_items(
        self,
        limit: int | None = None,
        branch_id: str | None = None,
        *,
        at_turn: int | None = None,
    ) -> Items:
        """Return the items of a branch, by default the current one, oldest first, or only the newest ones.

        With `at_turn`, the items as of the end of that turn.
        """
        limit = self._effective_limit(limit)
        if limit == 0:
            return []
        scope = await self._scope(branch_id)
        if at_turn is None:
            return await self._read(self._reads, scope, limit)
        end = await self._end_of_turn(scope, at_turn)
        return await self._read(self._branch_queries.history_before, (*scope, end), limit)

    async def pop_item(self, *, wrapper: Any = None) -> Any:  # noqa: ARG002
        """Remove and return the newest item of the current branch, or return `None`.

        Other branches that contain it keep it.
        """
        return await super().pop_item()

    async def clear_session(self, *, all_branches: bool = True, wrapper: Any = None) -> None:  # noqa: ARG002
        """Remove everything: all branches, usage, metadata, and the session itself.

        With `all_branches=False`, same as `clear_branch`.
        """
        await self._write(self._clear if all_branches else partial(self._clear_branch, None))

    # --- branches ---

    async def current_branch(self) -> str:
        """Return the branch that is read and written. It is the same in every process."""
        self._check_open()
        _, branch = await self._scope()
        return str(branch)

    async def create_branch_from_turn(self, turn_number: int, branch_name: str | None = None) -> str:
        """Create a branch with all items before a user turn of the current branch, and make it current."""
        check_turn(turn_number, least=1)
        _check_name(branch_name)
        branch = await self._write(partial(self._branch_off, turn_number, branch_name))
        self._logger.debug("created branch %r from turn %d", branch, turn_number)
        return branch

    async def switch_to_branch(self, branch_id: str) -> None:
        """Make a branch current, for all users of the session."""
        check_branch(branch_id)
        await self._write(partial(self._switch, branch_id))
        self._logger.debug("switched to branch %r", branch_id)

    async def delete_branch(self, branch_id: str, force: bool = False) -> None:
        """Delete a branch and the items that no other branch contains.

        The main branch cannot be deleted. The current branch is deleted only with `force`; `main` is current
        then.
        """
        if branch_id == MAIN:
            raise InvalidValueError("the main branch cannot be deleted")
        check_branch(branch_id)
        await self._write(partial(self._delete_branch, branch_id, force))
        self._logger.debug("deleted branch %r", branch_id)

    async def clear_branch(self, branch_id: str | None = None) -> None:
        """Remove the items and the usage of one branch, by default the current one; the branch stays.

        Other branches keep their items.
        """
        if branch_id is not None:
            check_branch(branch_id)
        await self._write(partial(self._clear_branch, branch_id))

    async def list_branches(self) -> list[dict[str, Any]]:
        """Return each branch as a dict: `branch_id, message_count, user_turns, is_current, created_at`."""
        self._check_open()
        scope = await self._scope()
        return await self._engine.fetch(self._branch_queries.list, scope[:1], _branches_of)

    async def diff_branches(self, first: str, second: str | None = None) -> BranchDiff:
        """Compare two branches. The second is by default the current branch."""
        self._check_open()
        check_branch(first)
        other = (await self._scope(second))[1]
        places = [await self._positions(branch) for branch in (first, other)]
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*places, strict=False)))
        last_id, turns = places[0][common - 1] if common else (0, 0)
        parts_within = any(len(place) > common and place[common][1] == turns for place in places)
        items = [
            await self._window(self._reads.after, (self.session_id, branch, last_id), None)
            for branch in (first, other)
        ]
        rest = [[row.item for row in rows] for rows in items]
        return BranchDiff(first, other, common, turns - (parts_within and turns > 0), *rest)

    async def _positions(self, branch: str) -> list[Row]:
        """Return the position and the turn of each item of a branch."""
        scope = (self.session_id, branch)
        if branch != MAIN and not await self._engine.fetch(self._branch_queries.exists, scope, list[Row]):
            raise unknown(branch)
        rows = await self._engine.fetch(self._branch_queries.positions, scope, list[Row])
        return [tuple(row) for row in rows]

    # --- how reads are made ---

    async def _scope(self, branch: str | None = None) -> tuple[Any, ...]:
        if branch is not None:
            check_branch(branch)
        await self._engine.prepare(self._queries.schema)
        (current, is_torn), *_ = await self._engine.fetch(
            self._branch_queries.current, (self.session_id,), list[Row]
        )
        if is_torn:
            await self._engine.write(self._adopt)
        return self.session_id, current if branch is None else branch

    async def _end_of_turn(self, scope: tuple[Any, ...], turn: int) -> int:
        """Return the first position after the end of a turn."""
        check_turn(turn, least=0)
        later = await self._engine.fetch(self._branch_queries.start_of_later, (*scope, turn), list[Row])
        if later:
            return int(later[0][0])
        if turn and not await self._engine.fetch(self._branch_queries.turn_start, (*scope, turn), list[Row]):
            raise InvalidValueError(f"branch {scope[1]!r} has no turn {turn}")
        return _END


def check_branch(branch: object) -> None:
    """Raise for a value that cannot be a branch name, before the database is called."""
    if not isinstance(branch, str):
        raise unknown(branch)
    check_text("branch_id", branch)


def check_turn(turn: object, least: int) -> None:
    """Raise `InvalidValueError` for a value that cannot be a turn number."""
    if not isinstance(turn, int) or isinstance(turn, bool) or not least <= turn <= _LAST_TURN:
        raise InvalidValueError(f"a turn number must be at least {least}, not {turn!r}")


def _check_name(name: object) -> None:
    if name is None:
        return
    if not isinstance(name, str) or not name.strip():
        raise InvalidValueError(f"branch_name must be a non-empty string, not {name!r}")
    if len(check_text("branch_name", name)) > _LONGEST_NAME:
        raise InvalidValueError(f"branch_name must have at most {_LONGEST_NAME} characters")


_EMPTY_MAIN = {"branch_id": MAIN, "message_count": 0, "user_turns": 0, "created_at": None}


def _branches_of(rows: list[Row]) -> list[dict[str, Any]]:
    branches = [
        {
            "branch_id": branch,
            "message_count": int(items),
            "user_turns": int(turns),
            "is_current": bool(is_current),
            "created_at": as_text(created_at),
        }
        for branch, items, turns, is_current, created_at in rows
    ]
    if not branches:
        return []
    others = [branch for branch in branches if branch["branch_id"] != MAIN]
    main = next((branch for branch in branches if branch["branch_id"] == MAIN), _EMPTY_MAIN)
    return [{**main, "is_current": not any(branch["is_current"] for branch in others)}, *others]


def as_text(time_stored: Any) -> str | None:
    """Format a stored time as SQLite does, for every database."""
    return time_stored if time_stored is None or isinstance(time_stored, str) else f"{time_stored:%F %T}"
