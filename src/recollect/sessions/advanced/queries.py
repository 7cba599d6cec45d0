"""The SQL of branches and usage, in the syntax that SQLite and PostgreSQL share.

A branch is its rows in `message_structure`: the items it contains, in the order of their ids. Branches share
items. An item is deleted when no branch contains it. The first parameter is the session, the second a branch.
"""

from functools import lru_cache

from ..sql.queries import Queries
from .turns import TOOL_CALLS

_COPIED = "message_type, sequence_number, user_turn_number, branch_turn_number, tool_name, created_at"
_CALLS = ", ".join(f"'{kind}'" for kind in TOOL_CALLS)


def _same_session(table: str) -> str:
    """A condition that uses no index. Otherwise SQLite would scan the session to find one item."""
    return f"({table}.session_id || '') = ?1"


class BranchQueries:
    """The statements for the branches of one pair of tables, in the dialect of the plain statements."""

    def __init__(self, plain: Queries) -> None:
        tables = plain.tables
        self._plain = plain
        self._messages, self._structure = f'"{tables.messages}"', f'"{tables.structure}"'
        self._branches = f'"{tables.branches}"'
        self._of_branch = "session_id = ?1 AND branch_id = ?2"
        # The sum makes PostgreSQL look up each item. Otherwise it might scan the items of all sessions.
        shown = (
            f"FROM {self._structure} s JOIN {self._messages} m"
            " ON m.session_id = s.session_id AND m.id = s.message_id + 0"
            " WHERE s.session_id = ?1 AND s.branch_id = ?2"
        )
        self.history = plain.reads(shown, position="s.message_id", scope=2)
        self.history_before = plain.reads(f"{shown} AND s.message_id < ?3", position="s.message_id", scope=3)
        turns = f"SELECT s.message_id, s.branch_turn_number, {plain.stored}, s.created_at {shown}"
        order = "s.message_type = 'user' ORDER BY s.branch_turn_number"
        self.user_turns = f"{turns} AND {order}"
        self.user_turns_like = f"{turns} AND m.message_data {plain.like} ?3 ESCAPE '\\' AND {order}"
        self._add_places()
        self._add_removals()
        self._add_branches()
        self._add_structure()

    def _add_places(self) -> None:
        """The state of a session: its current branch, the end of that branch, and items in no branch."""
        current = (
            f"coalesce((SELECT branch_id FROM {self._branches} WHERE session_id = ?1 AND is_current = 1),"
            " 'main')"
        )
        loose = (
            f"{self._messages} WHERE session_id = ?1 AND NOT EXISTS (SELECT 1 FROM {self._structure} s"
            f" WHERE s.message_id = {self._messages}.id AND {_same_session('s')})"
        )
        # Items without structure are at the end of a session, or at its start: plain sessions wrote them. The
        # row comparison keeps PostgreSQL from searching all rows of the table for the ends of a large
        # session.
        oldest = "(session_id, id) > (?1, 0) ORDER BY session_id, id LIMIT 1"
        newest = f"(session_id, id) < (?1, {2**62}) ORDER BY session_id DESC, id DESC LIMIT 1"
        ends = ", ".join(f"(SELECT id FROM {self._messages} WHERE {end})" for end in (oldest, newest))
        has_loose = f"EXISTS (SELECT 1 FROM {loose} AND id IN ({ends}))"
        from_end = (
            f" FROM (SELECT {current} AS branch_id) c"
            f" LEFT JOIN {self._structure} s ON s.session_id = ?1 AND s.branch_id = c.branch_id"
            f" AND s.message_id = (SELECT max(message_id) FROM {self._structure} last"
            " WHERE last.session_id = ?1 AND last.branch_id = c.branch_id)"
            f" LEFT JOIN {self._messages} m ON m.session_id = ?1 AND m.id = s.message_id"
        )
        # The SDK's plain session deletes items without updating the structure.
        self.current = f"SELECT c.branch_id, {has_loose} OR (s.id IS NOT NULL AND m.id IS NULL)"
        self.place = (
            f"{self.current}, coalesce(s.message_id, 0), coalesce(s.sequence_number, 0),"
            f" coalesce(s.branch_turn_number, 0) {from_end}"
        )
        self.current += from_end
        self.last = (
            "SELECT message_id, sequence_number, coalesce(branch_turn_number, 0)"
            f" FROM {self._structure} WHERE {self._of_branch} ORDER BY message_id DESC LIMIT 1"
        )
        self.loose_items = f"SELECT id, {self._plain.stored} FROM {loose} ORDER BY id"
        self.hide_missing = (
            f"DELETE FROM {self._structure} WHERE session_id = ?1 AND NOT EXISTS (SELECT 1"
            f" FROM {self._messages} m WHERE m.session_id = ?1 AND m.id = {self._structure}.message_id)"
        )

    def _add_removals(self) -> None:
        by_others = (
            f"EXISTS (SELECT 1 FROM {self._structure} other WHERE other.message_id = {self._messages}.id"
            f" AND {_same_session('other')} AND other.branch_id <> ?2)"
        )
        self.item = f"SELECT {self._plain.stored} FROM {self._messages} WHERE session_id = ?1 AND id = ?2"
        self.delete_item = (
            f"DELETE FROM {self._messages} WHERE session_id = ?1 AND id = ?3 AND NOT {by_others}"
        )
        self.hide_item = f"DELETE FROM {self._structure} WHERE {self._of_branch} AND message_id = ?3"
        self.delete_items_after = (
            f"DELETE FROM {self._messages} WHERE session_id = ?1 AND id IN (SELECT message_id"
            f" FROM {self._structure} WHERE {self._of_branch} AND message_id > ?3) AND NOT {by_others}"
        )
        self.hide_items_after = f"DELETE FROM {self._structure} WHERE {self._of_branch} AND message_id > ?3"

    def _add_branches(self) -> None:
        structure, branches = self._structure, self._branches
        self.turn_start = (
            f"SELECT message_id FROM {structure} WHERE {self._of_branch}"
            " AND message_type = 'user' AND branch_turn_number = ?3"
        )
        # Not simply the next number: removing items from the middle of a history leaves a gap.
        self.start_of_later = (
            f"SELECT message_id FROM {structure} WHERE {self._of_branch}"
            " AND message_type = 'user' AND branch_turn_number > ?3 ORDER BY branch_turn_number LIMIT 1"
        )
        self.exists = (
            f"SELECT 1 WHERE EXISTS (SELECT 1 FROM {branches} WHERE {self._of_branch})"
            f" OR EXISTS (SELECT 1 FROM {structure} WHERE {self._of_branch})"
        )
        self.make_current = (
            f"INSERT INTO {branches} (session_id, branch_id, is_current, created_at)"
            " VALUES (CAST(?1 AS VARCHAR), CAST(?2 AS VARCHAR), 1, coalesce((SELECT created_at"
            f" FROM {structure} WHERE {self._of_branch} ORDER BY message_id LIMIT 1), {self._plain.now}))"
            " ON CONFLICT (session_id, branch_id) DO UPDATE SET is_current = 1"
        )
        self.leave_others = f"UPDATE {branches} SET is_current = 0 WHERE session_id = ?1 AND branch_id <> ?2"
        self.forget_branch = f"DELETE FROM {branches} WHERE {self._of_branch}"
        self.copy_before = (
            f"INSERT INTO {structure} (session_id, message_id, branch_id, {_COPIED})"
            f" SELECT session_id, message_id, CAST(?3 AS VARCHAR), {_COPIED} FROM {structure}"
            f" WHERE {self._of_branch} AND message_id < ?4 ORDER BY message_id"
        )
        # Times are whole seconds: of two branches of the same second, the one with older rows comes first.
        self.list = (
            "SELECT branch_id, sum(items), sum(turns), max(is_current),"
            " coalesce(min(made_at), min(created_at)) AS first FROM ("
            " SELECT id, branch_id, 1 AS items, CASE WHEN message_type = 'user' THEN 1 ELSE 0 END AS turns,"
            f" 0 AS is_current, NULL AS made_at, created_at FROM {structure} WHERE session_id = ?1"
            f" UNION ALL SELECT {2**62}, branch_id, 0, 0, is_current, created_at, created_at"
            f" FROM {branches} WHERE session_id = ?1) AS rows GROUP BY branch_id"
            " ORDER BY branch_id <> 'main', first, min(id), branch_id"
        )

    def _add_structure(self) -> None:
        structure = self._structure
        row_id, turn = "CAST(value ->> 0 AS BIGINT)", "CAST(value ->> 3 AS INTEGER)"
        created_at = f"(SELECT created_at FROM {self._messages} WHERE session_id = ?1 AND id = {row_id})"
        self.add_structure = (
            f"INSERT INTO {structure} (session_id, message_id, branch_id, {_COPIED})"
            f" SELECT CAST(?1 AS VARCHAR), {row_id}, CAST(?2 AS VARCHAR), value ->> 1,"
            f" CAST(value ->> 2 AS BIGINT), {turn}, {turn}, value ->> 4, {created_at}"
            f" FROM {(self._plain.each or '').format('?3')}"
        )
        self.kinds = f"SELECT message_id, message_type, tool_name FROM {structure} WHERE session_id = ?1"
        self.shown_branches = f"SELECT DISTINCT branch_id FROM {structure} WHERE session_id = ?1"
        self.change_kinds = (
            f"UPDATE {structure} SET message_type = value ->> 1, tool_name = value ->> 2"
            f" FROM {(self._plain.each or '').format('?2')}"
            f" WHERE message_id = {row_id} AND {_same_session(structure)}"
        )
        self.outlines = (
            "SELECT user_turn_number, message_type, tool_name"
            f" FROM {structure} WHERE {self._of_branch} ORDER BY message_id"
        )
        self.positions = f"SELECT message_id, branch_turn_number FROM {structure} WHERE {self._of_branch}"
        self.positions += " ORDER BY message_id"
        # A tool search that the provider runs may leave an output without a call.
        unanswered = (
            "message_type = 'tool_search_output' AND NOT EXISTS (SELECT 1"
            f" FROM {structure} call WHERE call.session_id = ?1 AND call.branch_id = ?2"
            f" AND call.user_turn_number = {structure}.user_turn_number"
            " AND call.message_type = 'tool_search_call')"
        )
        # Older versions of the SDK store no name for some tools.
        tool = "coalesce(tool_name, CASE message_type WHEN 'tool_search_output' THEN 'tool_search'"
        tool += " WHEN 'tool_search_call' THEN 'tool_search' ELSE message_type END)"
        self.tool_usage = (
            f"SELECT {tool} AS tool, count(*), user_turn_number FROM {structure} WHERE {self._of_branch}"
            f" AND (message_type IN ({_CALLS}) OR {unanswered})"
            " GROUP BY tool, user_turn_number ORDER BY user_turn_number, min(message_id)"
        )


class UsageQueries:
    """The statements for the usage of turns."""

    def __init__(self, plain: Queries) -> None:
        usage, runs = f'"{plain.tables.usage}"', f'"{plain.tables.runs}"'
        counts = "requests, input_tokens, output_tokens, total_tokens"
        details = "CAST(input_tokens_details AS TEXT), CAST(output_tokens_details AS TEXT)"
        of_branch = "session_id = ?1 AND branch_id = ?2"
        sums = ", ".join(f"sum({name})" for name in counts.split(", "))
        self.of_session = f"SELECT {sums}, count(*) FROM {usage} WHERE session_id = ?1"
        self.of_branch = f"{self.of_session} AND branch_id = ?2"
        self.of_turn = f"SELECT {counts}, {details} FROM {usage} WHERE {of_branch} AND user_turn_number = ?3"
        self.by_turn = (
            f"SELECT user_turn_number, {counts}, {details} FROM {usage}"
            f" WHERE {of_branch} ORDER BY user_turn_number"
        )
        columns = f"{counts}, input_tokens_details, output_tokens_details"
        self.set_turn = (
            f"INSERT INTO {usage} (session_id, branch_id, user_turn_number, {columns}, created_at)"
            f" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, {plain.now})"
            " ON CONFLICT (session_id, branch_id, user_turn_number) DO UPDATE SET "
            + ", ".join(f"{name} = excluded.{name}" for name in columns.split(", "))
        )
        self.forget_gone_turns = (
            f"DELETE FROM {usage} WHERE {of_branch} AND user_turn_number > coalesce((SELECT"
            f' coalesce(branch_turn_number, 0) FROM "{plain.tables.structure}" WHERE {of_branch}'
            " ORDER BY message_id DESC LIMIT 1), -1)"
        )
        self.forget_branch = f"DELETE FROM {usage} WHERE {of_branch}"
        self.run = f"SELECT usage FROM {runs} WHERE session_id = ?1 AND run_id = ?2"
        self.set_run = (
            f"INSERT INTO {runs} (session_id, run_id, usage) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (session_id, run_id) DO UPDATE SET usage = excluded.usage"
        )


@lru_cache(maxsize=64)
def branch_queries_for(plain: Queries) -> tuple[BranchQueries, UsageQueries]:
    """Return the cached statements for the tables of the plain statements."""
    return BranchQueries(plain), UsageQueries(plain)
