"""The transactions of a session whose history has branches, as scripts."""

import json
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

from ...errors import InvalidValueError
from ...items import Item, is_user_message
from ...sql.scripts import Row, Script, Statement, run_all
from ..sql.queries import Queries, Reads
from ..sql.session import SQLSession
from .queries import BranchQueries, UsageQueries, branch_queries_for
from .turns import outline_of
from .usage import RunProgress, TurnUsage

MAIN = "main"


class BranchEnd(NamedTuple):
    """Where a session stands: its current branch, and the end of that."""

    branch: str
    is_torn: bool  # whether there are items that no branch shows, or places in it without an item
    last_id: int
    last_sequence: int
    last_turn: int


class BranchScripts(SQLSession):
    """The transactions of a session with branches."""

    @cached_property
    def _branch_queries(self) -> BranchQueries:
        return branch_queries_for(self._queries)[0]

    @cached_property
    def _usage_queries(self) -> UsageQueries:
        return branch_queries_for(self._queries)[1]

    def _reads_of(self, queries: Queries) -> Reads:
        return branch_queries_for(queries)[0].history

    def _scope_within(self) -> Script[tuple[Any, ...]]:
        place = yield from self._place()
        return self.session_id, place.branch

    def _place(self) -> Script[BranchEnd]:
        rows = yield Statement(self._branch_queries.place, (self.session_id,))
        if not rows[0][1]:
            return BranchEnd(*rows[0])
        yield from self._adopt()
        rows = yield Statement(self._branch_queries.place, (self.session_id,))
        return BranchEnd(*rows[0])

    def _append(self, encoded: list[str]) -> Script[None]:
        yield from self._lock(make=True)
        place = yield from self._place()
        ids = yield from self._append_items(encoded)
        yield from self._add_structure(place, zip(ids, encoded, strict=True))

    def _append_items(self, encoded: list[str]) -> Script[list[int]]:
        """Append items without their places in a branch, and return their ids."""
        ids: list[int] = []
        texts = self._stored_form(encoded)
        for statement in self._queries.append(self.session_id, texts, self._new_metadata):
            ids += [row[0] for row in (yield statement)]
        return sorted(ids)

    def _add_structure(self, place: BranchEnd, rows: Iterable[tuple[int, bytes | str]]) -> Script[None]:
        """Append items to a branch."""
        yield from run_all(self._structure(place, rows))

    def _structure(self, place: BranchEnd, rows: Iterable[tuple[int, bytes | str]]) -> list[Statement]:
        """The statement that appends items to a branch; none if there are no items."""
        structure, turn = [], place.last_turn
        for sequence, (row_id, stored) in enumerate(rows, start=place.last_sequence + 1):
            outline = outline_of(stored)
            turn += outline.starts_turn
            structure.append((row_id, outline.kind, sequence, turn, outline.tool))
        parameters = (self.session_id, place.branch, json.dumps(structure))
        return [Statement(self._branch_queries.add_structure, parameters)] if structure else []

    def _adopt(self) -> Script[None]:
        """Append items that belong to no branch to the main branch: a plain session wrote them.

        Items that the SDK's plain session removed are removed from the structure too.
        """
        yield from self._lock(make=True)
        yield Statement(self._queries.make_session, (self.session_id,))
        yield Statement(self._branch_queries.hide_missing, (self.session_id,))
        rows = yield Statement(self._branch_queries.loose_items, (self.session_id,))
        of_main = yield Statement(self._reads.newest, (self.session_id, MAIN, 1))
        if rows and of_main and rows[0][0] < of_main[0][0]:
            # They belong between items of the branch: all turns must be numbered again.
            shown = yield Statement(self._reads.all, (self.session_id, MAIN))
            rows = sorted([*rows, *shown], key=lambda row: row[0])
            yield Statement(self._branch_queries.hide_items_after, (self.session_id, MAIN, 0))
        last = yield Statement(self._branch_queries.last, (self.session_id, MAIN))
        place = BranchEnd(MAIN, False, *last[0]) if last else BranchEnd(MAIN, False, 0, 0, 0)
        yield from self._add_structure(place, [(row[0], row[1]) for row in rows])

    def _remove_newest(self) -> Script[Row | None]:
        place = yield from self._place()
        if not place.last_id:
            return None
        rows = yield Statement(self._branch_queries.item, (self.session_id, place.last_id))
        parameters = (self.session_id, place.branch, place.last_id)
        yield Statement(self._branch_queries.delete_item, parameters)
        yield Statement(self._branch_queries.hide_item, parameters)
        yield Statement(self._usage_queries.forget_gone_turns, parameters[:2])
        return place.last_id, rows[0][0] if rows else ""

    def _remove_after(self, scope: tuple[Any, ...], position: int) -> Script[None]:
        yield Statement(self._branch_queries.delete_items_after, (*scope, position))
        yield Statement(self._branch_queries.hide_items_after, (*scope, position))

    def _transform(self, change: Callable[[list[Item]], list[Item]]) -> Script[None]:
        """Transform the history. The usage of the remaining turns moves to their new turn numbers."""
        turns: list[list[str]] = [[], []]

        def record_and_change(items: list[Item]) -> list[Item]:
            turns[0] = _user_turns(items)
            changed = change(items)
            turns[1] = _user_turns(changed)
            return changed

        yield from super()._transform(record_and_change)
        yield from self._move_usage((yield from self._scope_within()), moved_turns(*turns))

    def _move_usage(self, scope: tuple[Any, ...], moved: dict[int, int]) -> Script[None]:
        rows = yield Statement(self._usage_queries.by_turn, scope)
        if all(moved.get(turn, turn if turn == 0 else None) == turn for turn, *_ in rows):
            return
        yield Statement(self._usage_queries.forget_branch, scope)
        for turn, *costs in rows:
            if turn == 0 or turn in moved:
                yield Statement(self._usage_queries.set_turn, (*scope, moved.get(turn, 0), *costs))

    def _revise(self, change: Callable[[list[Item]], list[Item | None]]) -> Script[None]:
        """Revise items, and update their kinds and tools in the structure."""
        yield from super()._revise(change)
        shown = yield Statement(self._branch_queries.kinds, (self.session_id,))
        known = {row_id: (kind, tool) for row_id, kind, tool in shown}
        rows = yield Statement(self._queries.history.all, (self.session_id,))
        outlines = ((row_id, *outline_of(stored)[:2]) for row_id, stored in rows)
        changed = [[row_id, *now] for row_id, *now in outlines if known.get(row_id, tuple(now)) != tuple(now)]
        if any(kind == "user" for _, kind, _ in changed):
            yield from self._count_turns_again()
        elif changed:
            yield Statement(self._branch_queries.change_kinds, (self.session_id, json.dumps(changed)))

    def _count_turns_again(self) -> Script[None]:
        """Number all turns again, because items became user messages: envelopes may now show structure."""
        for (branch,) in (yield Statement(self._branch_queries.shown_branches, (self.session_id,))):
            rows = yield Statement(self._reads.all, (self.session_id, branch))
            yield Statement(self._branch_queries.hide_items_after, (self.session_id, branch, 0))
            yield from self._add_structure(
                BranchEnd(branch, False, 0, 0, 0), [(row[0], row[1]) for row in rows]
            )

    # --- usage ---

    def _count(self, run: RunProgress) -> Script[None]:
        """Add the cost of a run since it was last counted to the current turn, if there is one."""
        if not (yield from self._lock()):
            return
        place = yield from self._place()
        if not place.last_id:
            return
        yield Statement(self._queries.make_session, (self.session_id,))
        yield from run_all((yield from self._count_at(place, run)))

    def _count_at(self, place: BranchEnd, run: RunProgress) -> Script[list[Statement]]:
        """The changes that add the cost of a run to the last turn of a branch."""
        is_known = run.run_id is not None and run.is_new and not run.is_interrupted
        first_item = 0 if is_known else (yield from self._turn_start(place))
        run_id = run.run_id or f"turn:{first_item}"
        changes: list[Statement] = []
        counted = yield from self._counted([run_id, *run.earlier_state_ids(first_item)])
        added = run.usage.since(counted or run.before)
        if counted is None or any(added.counts):
            turn = (self.session_id, place.branch, place.last_turn)
            changes.append((yield from self._add_usage(turn, added)))
        changes.append(self._remember_run(run_id, run.usage))
        if run.is_interrupted:
            changes.append(self._remember_run(run.state_id(first_item), run.usage))
        return changes

    def _turn_start(self, place: BranchEnd) -> Script[int]:
        """Return the id of the first item of the current turn, or 0 before the first turn."""
        scope = (self.session_id, place.branch, place.last_turn)
        rows = yield Statement(self._branch_queries.turn_start, scope)
        return rows[0][0] if rows else 0

    def _counted(self, run_ids: Iterable[str]) -> Script[TurnUsage | None]:
        """Return the usage that was stored for the first known id of these."""
        for run_id in run_ids:
            rows = yield Statement(self._usage_queries.run, (self.session_id, run_id))
            if rows:
                return TurnUsage.from_json(rows[0][0])
        return None

    def _add_usage(self, turn: tuple[Any, ...], added: TurnUsage) -> Script[Statement]:
        rows = yield Statement(self._usage_queries.of_turn, turn)
        total = TurnUsage.of_row(tuple(rows[0])).plus(added) if rows else added
        return Statement(self._usage_queries.set_turn, (*turn, *total.columns()))

    def _remember_run(self, run_id: str, usage: TurnUsage) -> Statement:
        return Statement(self._usage_queries.set_run, (self.session_id, run_id, usage.to_json()))

    def _clear_branch(self, name: str | None) -> Script[None]:
        if not (yield from self._lock()):
            if name not in (None, MAIN):
                raise unknown(name)
            return
        place = yield from self._place()
        branch = place.branch if name is None else name
        if not (yield from self._exists(branch)):
            raise unknown(branch)
        yield from self._empty_branch((self.session_id, branch))

    def _empty_branch(self, scope: tuple[Any, ...]) -> Script[None]:
        yield from self._remove_after(scope, 0)
        yield Statement(self._usage_queries.forget_branch, scope)
        yield Statement(self._queries.empty_notes, (self.session_id,))

    def _branch_off(self, turn: int, name: str | None) -> Script[str]:
        yield from self._lock(make=True)
        source = yield from self._scope_within()
        starts = yield Statement(self._branch_queries.turn_start, (*source, turn))
        if not starts:
            raise InvalidValueError(f"branch {source[1]!r} has no user turn {turn}")
        branch = yield from self._free_name(turn, name)
        yield from self._make_current(branch)
        yield Statement(self._queries.touch_session, (self.session_id,))
        yield Statement(self._branch_queries.copy_before, (*source, branch, starts[0][0]))
        return branch

    def _free_name(self, turn: int, name: str | None) -> Script[str]:
        made = f"branch_from_turn_{turn}_{int(time.time())}"
        candidate, number = name or made, 1
        while (yield from self._exists(candidate)):
            if name is not None:
                raise InvalidValueError(f"there is already a branch {name!r}")
            number += 1
            candidate = f"{made}_{number}"
        return candidate

    def _exists(self, branch: str) -> Script[bool]:
        if branch == MAIN:
            return True
        return bool((yield Statement(self._branch_queries.exists, (self.session_id, branch))))

    def _switch(self, branch: str) -> Script[None]:
        if not (yield from self._lock()) and branch != MAIN:
            raise unknown(branch)
        yield from self._place()
        if not (yield from self._exists(branch)):
            raise unknown(branch)
        yield from self._make_current(branch)

    def _make_current(self, branch: str) -> Script[None]:
        if branch != MAIN:
            yield Statement(self._branch_queries.make_current, (self.session_id, branch))
        yield Statement(self._branch_queries.leave_others, (self.session_id, branch))

    def _delete_branch(self, branch: str, force: bool) -> Script[None]:
        if not (yield from self._lock()):
            raise unknown(branch)
        place = yield from self._place()
        if not (yield from self._exists(branch)):
            raise unknown(branch)
        if branch == place.branch and not force:
            raise InvalidValueError(
                f"branch {branch!r} is current: switch to another first, or use force=True"
            )
        yield from self._empty_branch((self.session_id, branch))
        yield Statement(self._branch_queries.forget_branch, (self.session_id, branch))


def unknown(branch: object) -> ValueError:
    return ValueError(f"there is no branch {branch!r}")


def _user_turns(items: list[Item]) -> list[str]:
    """Return a text that identifies each user turn."""
    return [repr(item) for item in items if is_user_message(item)]


def moved_turns(before: list[str], after: list[str]) -> dict[int, int]:
    """Return the new number of each remaining turn, in order. Turns count from 1."""
    moved, start = {}, 0
    for number, turn in enumerate(after, start=1):
        found = next((old for old in range(start, len(before)) if before[old] == turn), None)
        if found is not None:
            moved[found + 1] = number
            start = found + 1
    return moved
