"""A session on SQL whose history has branches: which there are, which is current, and what each shows."""

import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, NamedTuple

from ...items import Item, decode_item
from ..protocol import Items, check_text
from ..sql.queries import Queries, Reads
from ..sql.scripts import Row, Script, Statement
from ..sql.session import SQLSession, report_corrupt
from .outline import outline_of
from .queries import BranchQueries, UsageQueries, branch_queries_for

MAIN = "main"
_LONGEST_NAME = 255
_LAST_TURN = 2**31 - 2  # that a column holds, with one more after it
_END = 2**62  # a position after all others


class Place(NamedTuple):
    """Where a session stands: its current branch, and the end of that."""

    branch: str
    is_torn: bool  # whether there are items that no branch shows, or places in it without an item
    last_id: int
    last_sequence: int
    last_turn: int


@dataclass(frozen=True)
class BranchDiff:
    """Two branches: what they share from the start, and what each has after that."""

    first: str
    second: str
    common_items: int
    common_turns: int
    """How many whole turns they share; they part in the one after."""
    only_in_first: list[Item]
    only_in_second: list[Item]


class BranchingSession(SQLSession):
    """What a session with branches does otherwise than a plain one, and the branches themselves."""

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
        """The items of a branch, by default the current one, oldest first; with a limit the newest of them.

        `at_turn` gives them as they were at the end of that turn.
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
        """Remove the newest item of the current branch and return it, `None` if there is none.

        Other branches that show it keep it.
        """
        return await super().pop_item()

    async def clear_session(self, *, all_branches: bool = False, wrapper: Any = None) -> None:  # noqa: ARG002
        """Remove the items of the current branch; the last or `all_branches` take the session with them."""
        await self._write(partial(self._clear, all_branches))

    # --- branches ---

    async def current_branch(self) -> str:
        """The branch that is read and written: the same in every process."""
        self._check_open()
        _, branch = await self._scope()
        return str(branch)

    async def create_branch_from_turn(self, turn_number: int, branch_name: str | None = None) -> str:
        """Make a branch of everything before a user turn of the current one, and make it current."""
        check_turn(turn_number, least=1)
        _check_name(branch_name)
        branch = await self._write(partial(self._branch_off, turn_number, branch_name))
        self._logger.debug("made branch %r from turn %d", branch, turn_number)
        return branch

    async def switch_to_branch(self, branch_id: str) -> None:
        """Make a branch current, for everyone who uses the session."""
        check_branch(branch_id)
        await self._write(partial(self._switch, branch_id))
        self._logger.debug("switched to branch %r", branch_id)

    async def delete_branch(self, branch_id: str, force: bool = False) -> None:
        """Delete a branch and the items that no other branch shows.

        The main branch stays. The current one is deleted only with `force`; then the main branch is current.
        """
        if branch_id == MAIN:
            raise ValueError("the main branch cannot be deleted")
        check_branch(branch_id)
        await self._write(partial(self._delete_branch, branch_id, force))
        self._logger.debug("deleted branch %r", branch_id)

    async def list_branches(self) -> list[dict[str, Any]]:
        """Each branch as a dict: `branch_id, message_count, user_turns, is_current, created_at`."""
        self._check_open()
        scope = await self._scope()
        return await self._engine.fetch(self._branch_queries.list, scope[:1], _branches_of)

    async def diff_branches(self, first: str, second: str | None = None) -> BranchDiff:
        """What two branches share, and what each has after that; by default against the current one."""
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
        """Where the items of a branch stand, and in which turns."""
        scope = (self.session_id, branch)
        if branch != MAIN and not await self._engine.fetch(self._branch_queries.exists, scope, list[Row]):
            raise _unknown(branch)
        rows = await self._engine.fetch(self._branch_queries.positions, scope, list[Row])
        return [tuple(row) for row in rows]

    # --- how reads are made ---

    @cached_property
    def _branch_queries(self) -> BranchQueries:
        return branch_queries_for(self._queries)[0]

    @cached_property
    def _usage_queries(self) -> UsageQueries:
        return branch_queries_for(self._queries)[1]

    def _reads_of(self, queries: Queries) -> Reads:
        return branch_queries_for(queries)[0].history

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
        """The position before which all items up to the end of a turn stand."""
        check_turn(turn, least=0)
        later = await self._engine.fetch(self._branch_queries.start_of_later, (*scope, turn), list[Row])
        if later:
            return int(later[0][0])
        if turn and not await self._engine.fetch(self._branch_queries.turn_start, (*scope, turn), list[Row]):
            raise ValueError(f"branch {scope[1]!r} has no turn {turn}")
        return _END

    # --- how writes are made ---

    def _scope_within(self) -> Script[tuple[Any, ...]]:
        place = yield from self._place()
        return self.session_id, place.branch

    def _place(self) -> Script[Place]:
        rows = yield Statement(self._branch_queries.place, (self.session_id,))
        if not rows[0][1]:
            return Place(*rows[0])
        yield from self._adopt()
        rows = yield Statement(self._branch_queries.place, (self.session_id,))
        return Place(*rows[0])

    def _append(self, encoded: list[str]) -> Script[None]:
        yield from self._lock(make=True)
        place = yield from self._place()
        ids: list[int] = []
        for statement in self._queries.append(self.session_id, encoded, self._new_metadata):
            ids += [row[0] for row in (yield statement)]
        yield from self._add_structure(place, zip(sorted(ids), encoded, strict=True))

    def _add_structure(self, place: Place, rows: Iterable[tuple[int, bytes | str]]) -> Script[None]:
        """Let a branch show items after those it has."""
        structure, turn = [], place.last_turn
        for sequence, (row_id, stored) in enumerate(rows, start=place.last_sequence + 1):
            outline = outline_of(stored)
            turn += outline.starts_turn
            structure.append((row_id, outline.kind, sequence, turn, outline.tool))
        if structure:
            parameters = (self.session_id, place.branch, json.dumps(structure))
            yield Statement(self._branch_queries.add_structure, parameters)

    def _adopt(self) -> Script[None]:
        """Let the main branch show what no branch shows: items that a plain session has written.

        What the SDK's plain session has removed goes from the structure too.
        """
        yield from self._lock(make=True)
        yield Statement(self._queries.make_session, (self.session_id,))
        yield Statement(self._branch_queries.hide_missing, (self.session_id,))
        rows = yield Statement(self._branch_queries.loose_items, (self.session_id,))
        of_main = yield Statement(self._reads.newest, (self.session_id, MAIN, 1))
        if rows and of_main and rows[0][0] < of_main[0][0]:
            # They belong between others, whose turns must be counted again.
            shown = yield Statement(self._reads.all, (self.session_id, MAIN))
            rows = sorted([*rows, *shown], key=lambda row: row[0])
            yield Statement(self._branch_queries.hide_items_after, (self.session_id, MAIN, 0))
        last = yield Statement(self._branch_queries.last, (self.session_id, MAIN))
        place = Place(MAIN, False, *last[0]) if last else Place(MAIN, False, 0, 0, 0)
        yield from self._add_structure(place, [(row[0], row[1]) for row in rows])

    def _pop(self, accept: Callable[[Item], bool] | None = None) -> Script[Item | None]:
        yield from self._lock()
        while (place := (yield from self._place())).last_id:
            rows = yield Statement(self._branch_queries.item, (self.session_id, place.last_id))
            item = decode_item(rows[0][0]) if rows else None
            taken = item is not None and (accept is None or accept(item))
            yield from self._hide_last(place)
            if taken:
                return item
            if item is None:
                report_corrupt(place.last_id)
        return None

    def _hide_last(self, place: Place) -> Script[None]:
        parameters = (self.session_id, place.branch, place.last_id)
        yield Statement(self._branch_queries.delete_item, parameters)
        yield Statement(self._branch_queries.hide_item, parameters)
        yield Statement(self._usage_queries.forget_gone_turns, parameters[:2])

    def _remove_after(self, scope: tuple[Any, ...], position: int) -> Script[None]:
        yield Statement(self._branch_queries.delete_items_after, (*scope, position))
        yield Statement(self._branch_queries.hide_items_after, (*scope, position))

    def _transform(self, change: Callable[[list[Item]], list[Item]]) -> Script[None]:
        yield from super()._transform(change)
        # Only now: turns after the first change were removed, and written again.
        yield Statement(self._usage_queries.forget_gone_turns, (yield from self._scope_within()))

    def _clear(self, all_branches: bool = False) -> Script[None]:
        yield from self._lock()
        scope = yield from self._scope_within()
        others = yield Statement(self._branch_queries.other_branches, (self.session_id,))
        if all_branches or not others:
            yield from super()._clear()
        else:
            yield from self._remove_after(scope, 0)
            yield Statement(self._usage_queries.forget_branch, scope)

    def _branch_off(self, turn: int, name: str | None) -> Script[str]:
        yield from self._lock()
        source = yield from self._scope_within()
        starts = yield Statement(self._branch_queries.turn_start, (*source, turn))
        if not starts:
            raise ValueError(f"branch {source[1]!r} has no user turn {turn}")
        branch = yield from self._free_name(turn, name)
        yield from self._make_current(branch)
        yield Statement(self._branch_queries.copy_before, (*source, branch, starts[0][0]))
        return branch

    def _free_name(self, turn: int, name: str | None) -> Script[str]:
        made = f"branch_from_turn_{turn}_{int(time.time())}"
        candidate, number = name or made, 1
        while (yield from self._exists(candidate)):
            if name is not None:
                raise ValueError(f"there is already a branch {name!r}")
            number += 1
            candidate = f"{made}_{number}"
        return candidate

    def _exists(self, branch: str) -> Script[bool]:
        if branch == MAIN:
            return True
        return bool((yield Statement(self._branch_queries.exists, (self.session_id, branch))))

    def _switch(self, branch: str) -> Script[None]:
        yield from self._lock()
        yield from self._place()
        if not (yield from self._exists(branch)):
            raise _unknown(branch)
        yield from self._make_current(branch)

    def _make_current(self, branch: str) -> Script[None]:
        if branch != MAIN:
            yield Statement(self._branch_queries.make_current, (self.session_id, branch))
        yield Statement(self._branch_queries.leave_others, (self.session_id, branch))

    def _delete_branch(self, branch: str, force: bool) -> Script[None]:
        yield from self._lock()
        place = yield from self._place()
        if not (yield from self._exists(branch)):
            raise _unknown(branch)
        if branch == place.branch and not force:
            raise ValueError(f"branch {branch!r} is current: switch to another first, or use force=True")
        yield from self._remove_after((self.session_id, branch), 0)
        yield Statement(self._usage_queries.forget_branch, (self.session_id, branch))
        yield Statement(self._branch_queries.forget_branch, (self.session_id, branch))


def _unknown(branch: object) -> ValueError:
    return ValueError(f"there is no branch {branch!r}")


def check_branch(branch: object) -> None:
    """Refuse what no branch can be named, before a database stumbles over it."""
    if not isinstance(branch, str):
        raise _unknown(branch)
    check_text("branch_id", branch)


def check_turn(turn: object, least: int) -> None:
    """Refuse what cannot be the number of a turn."""
    if not isinstance(turn, int) or isinstance(turn, bool) or not least <= turn <= _LAST_TURN:
        raise ValueError(f"a turn is a number from {least} on, not {turn!r}")


def _check_name(name: object) -> None:
    if name is None:
        return
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"a branch needs a name, not {name!r}")
    if len(check_text("branch_name", name)) > _LONGEST_NAME:
        raise ValueError(f"a branch's name has at most {_LONGEST_NAME} characters")


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
    """A stored time as SQLite writes it, whatever the database."""
    return time_stored if time_stored is None or isinstance(time_stored, str) else f"{time_stored:%F %T}"
