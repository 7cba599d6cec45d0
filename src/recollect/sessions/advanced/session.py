"""A session with branches, queries about its turns and tools, and the usage of its runs."""

import logging
from collections import defaultdict
from functools import partial
from typing import Any

from ...items import decode_item
from ...sql.scripts import MakeScript, Row, Script, T
from ...text_checks import check_text
from ..protocol import Items
from ..sql.rows import report_corrupt
from .branches import BranchingSession, as_text, check_branch, check_turn
from .turns import UserTurn, describe_turns, matching_turns, pattern_for
from .usage import COUNTS, RunProgress, TurnUsage, mark_run, store_or_log


class AdvancedSession(BranchingSession):
    """The base class of the advanced sessions of all databases."""

    keeps_abilities = True

    _stores_usage = False

    def _configure(self, logger: logging.Logger | None, store_usage: bool) -> None:
        if logger is not None:
            self._logger = logger
        self._stores_usage = store_usage

    async def get_items(
        self,
        limit: int | None = None,
        branch_id: str | None = None,
        *,
        at_turn: int | None = None,
        wrapper: Any = None,
    ) -> Items:
        """Return the items of a branch, by default the current one, oldest first, or only the newest ones.

        With `at_turn`, the items as of the end of that turn. The Runner passes its context as `wrapper`.
        """
        await self.begin_run(wrapper)
        return await super().get_items(limit, branch_id, at_turn=at_turn)

    async def begin_run(self, wrapper: Any) -> None:
        """Record that a run has begun, so that its usage can be stored. `wrapper` is the Runner's context."""
        if getattr(wrapper, "usage", None) is not None:
            mark_run(wrapper)

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:
        """Append a batch to the current branch: all of its items or none.

        The Runner passes its context as `wrapper`, for the option `store_usage`.
        """
        if not self._counts(wrapper) or not items:
            return await super().add_items(items)
        self._check_open()
        encoded = await self._texts_of(items)
        return await self._write(partial(self._counting, wrapper, partial(self._append, encoded)))

    async def add_batch(self, items: Items, batch_id: str, *, wrapper: Any = None) -> bool:
        """Append a batch unless one with this id was appended within the last day."""
        if not self._counts(wrapper):
            return await super().add_batch(items, batch_id)
        self._check_open()
        append = partial(self._append_once, await self._texts_of(items), check_text("batch_id", batch_id))
        return await self._write(partial(self._counting, wrapper, append))

    def _counts(self, wrapper: Any) -> bool:
        return self._stores_usage and getattr(wrapper, "usage", None) is not None

    # --- turns and tools ---

    async def read_turns(self, branch_id: str | None = None) -> list[UserTurn]:
        """Return the user turns of a branch, by default the current one."""
        self._check_open()
        scope = await self._scope(branch_id)
        return await self._engine.fetch(self._branch_queries.user_turns, scope, _turns_of)

    async def get_conversation_turns(self, branch_id: str | None = None) -> list[dict[str, Any]]:
        """Return user turns as dicts: `turn, content` (short), `full_content, timestamp, can_branch`."""
        return describe_turns(await self.read_turns(branch_id))

    async def find_turns_by_content(
        self, search_term: str, branch_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the user turns that contain a text, ignoring case, as dicts."""
        self._check_open()
        matching_turns([], search_term)  # raises for an invalid search term before anything is read
        return await self._engine.fetch(
            self._branch_queries.user_turns_like,
            (*await self._scope(branch_id), pattern_for(search_term)),
            lambda rows: matching_turns(_turns_of(rows), search_term),
        )

    async def create_branch_from_content(self, search_term: str, branch_name: str | None = None) -> str:
        """Create a branch from the first user turn that contains a text, and make it current."""
        turns = await self.find_turns_by_content(search_term)
        if not turns:
            raise ValueError("no user turn contains that text")
        return await self.create_branch_from_turn(turns[0]["turn"], branch_name)

    async def get_conversation_by_turns(
        self, branch_id: str | None = None
    ) -> dict[int, list[dict[str, str | None]]]:
        """Return the `type` and `tool_name` of the items of each turn, in order."""
        self._check_open()
        scope = await self._scope(branch_id)
        return await self._engine.fetch(self._branch_queries.outlines, scope, _by_turns)

    async def get_tool_usage(self, branch_id: str | None = None) -> list[tuple[str, int, int]]:
        """Return how often each tool was called in each turn: `(tool_name, count, turn)`."""
        self._check_open()
        scope = await self._scope(branch_id)
        return await self._engine.fetch(self._branch_queries.tool_usage, scope, _tuples_of)

    # --- usage ---

    async def store_run_usage(self, result: Any) -> None:
        """Add the cost of a run to the current turn of the current branch. The same run counts once.

        As in the Agents SDK, a failure is logged and not raised. `count_run` raises it.
        """
        await store_or_log(self.count_run, result, self._logger)

    async def count_run(self, result: Any) -> None:
        """As `store_run_usage`, but raise `ValueError` for a result without usage, and storage errors."""
        await self._write(partial(self._count, RunProgress.of_result(result)))

    async def get_session_usage(self, branch_id: str | None = None) -> dict[str, int] | None:
        """Return the totals of a branch, or of all: `COUNTS`, `total_turns`; `None` if nothing was stored."""
        self._check_open()
        if branch_id is not None:
            check_branch(branch_id)
        await self._engine.prepare(self._queries.schema)
        sql = self._usage_queries.of_session if branch_id is None else self._usage_queries.of_branch
        parameters = (self.session_id,) if branch_id is None else (self.session_id, branch_id)
        return await self._engine.fetch(sql, parameters, _totals_of)

    async def get_turn_usage(
        self, user_turn_number: int | None = None, branch_id: str | None = None
    ) -> list[dict[str, Any]] | dict[str, Any]:
        """Return the usage of one turn (empty if none was stored), or of all turns as a list."""
        self._check_open()
        scope = await self._scope(branch_id)
        if user_turn_number is None:
            return await self._engine.fetch(self._usage_queries.by_turn, scope, _costs_of)
        check_turn(user_turn_number, least=0)
        rows = await self._engine.fetch(self._usage_queries.of_turn, (*scope, user_turn_number), list[Row])
        return TurnUsage.of_row(tuple(rows[0])).as_dict() if rows else {}

    def _counting(self, wrapper: Any, append: MakeScript[T]) -> Script[T]:
        """Append items, and add the cost of the run so far."""
        appended = yield from append()
        yield from self._count(RunProgress.of_context(wrapper))
        return appended


def _turns_of(rows: list[Row]) -> list[UserTurn]:
    turns = []
    for row_id, turn, stored, created_at in rows:
        item = decode_item(stored)
        if item is None:
            report_corrupt(row_id)
        else:
            turns.append(UserTurn(turn, item, as_text(created_at)))
    return turns


def _by_turns(rows: list[Row]) -> dict[int, list[dict[str, str | None]]]:
    turns: defaultdict[int, list[dict[str, str | None]]] = defaultdict(list)
    for turn, kind, tool in rows:
        turns[turn or 0].append({"type": kind, "tool_name": tool})
    return dict(turns)


def _tuples_of(rows: list[Row]) -> list[tuple[str, int, int]]:
    return [(tool, count, turn or 0) for tool, count, turn in rows]


def _totals_of(rows: list[Row]) -> dict[str, int] | None:
    *sums, turns = rows[0]
    if not turns:
        return None
    return {**dict(zip(COUNTS, (int(total or 0) for total in sums), strict=True)), "total_turns": turns}


def _costs_of(rows: list[Row]) -> list[dict[str, Any]]:
    return [{"user_turn_number": row[0], **TurnUsage.of_row(tuple(row[1:])).as_dict()} for row in rows]
