"""Summaries of conversations, in SQLite or PostgreSQL."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from ...ids import new_id
from ...items import estimate_text_tokens
from ...sessions.settings import check_limit
from ...sql.columns import check_count, check_id, check_label, check_time, text_to_column, time_to_column
from ...sql.database import SQLStore
from ...sql.scripts import Script, Statement
from .schema import HEADS, SUMMARIES, SummarySchema
from .summary import COLUMNS, ConversationSummary, summaries_from, to_row

if TYPE_CHECKING:
    from ..events import StrategyEvent

_DELETED_AT_ONCE = 500
_LATEST = 2**62
_STORED = ", ".join(COLUMNS)

# An insert locks the row of the conversation, so that no version is assigned twice.
_NEXT_VERSION = (
    f"INSERT INTO {HEADS} (conversation_id, version) VALUES (?1, 1)"
    f" ON CONFLICT (conversation_id) DO UPDATE SET version = {HEADS}.version + 1 RETURNING version"
)
_ADD = f"INSERT INTO {SUMMARIES} ({_STORED}) VALUES ({', '.join(f'?{n + 1}' for n in range(len(COLUMNS)))})"
_NEWEST = (
    f"SELECT {_STORED} FROM {SUMMARIES} WHERE conversation_id = ?1"
    " AND (CAST(?2 AS VARCHAR) IS NULL OR agent = ?2)"
    " AND (expires_at IS NULL OR expires_at > ?3) ORDER BY version DESC LIMIT 1"
)
_LIST = (
    f"SELECT {_STORED} FROM {SUMMARIES} WHERE conversation_id = ?1 AND version < ?2"
    " ORDER BY version DESC LIMIT ?3"
)
_FORGET_VERSION = f"DELETE FROM {HEADS} WHERE conversation_id = ?1"
_DELETE = f"DELETE FROM {SUMMARIES} WHERE conversation_id = ?1 RETURNING 1"
_PURGE = (
    f"DELETE FROM {SUMMARIES} WHERE id IN"
    f" (SELECT id FROM {SUMMARIES} WHERE expires_at <= ?1 LIMIT ?2) RETURNING 1"
)


class ConversationSummaryStore(SQLStore):
    """Stores the summaries of conversations. The newest one is injected into an agent's instructions.

    Give it a path, `sqlite:///path`, `:memory:`, or the URL of a PostgreSQL database. Its method `on_summary`
    is a callback for a `StrategySession` that stores every summary of the session.
    """

    schema = SummarySchema()

    async def add(
        self,
        conversation_id: str,
        text: str,
        *,
        agent: str | None = None,
        model: str | None = None,
        token_length: int | None = None,
        covered_position: int | None = None,
        ttl: float | None = None,
        expires_at: datetime | None = None,
    ) -> ConversationSummary:
        """Store a summary as the next version. It expires after `ttl` seconds, at `expires_at`, or never.

        `token_length` is estimated if it is not given.
        """
        now = datetime.now(UTC)
        summary = ConversationSummary(
            new_id(),
            check_id("conversation_id", conversation_id),
            check_label("agent", agent),
            _checked_summary(text),
            check_label("model", model),
            estimate_text_tokens(text) if token_length is None else _counted("token_length", token_length),
            check_count("covered_position", covered_position),
            0,
            now,
            _expiry(now, ttl, expires_at),
        )
        return await self._write(partial(_add, summary))

    async def on_summary(self, event: "StrategyEvent") -> None:
        """Store the summary of a `StrategySession`. Its session id is the conversation id."""
        made = event.summary
        if made is not None:
            position = made.covers.position
            await self.add(event.session_id, made.text, model=made.model, covered_position=position)

    async def newest(self, conversation_id: str, *, agent: str | None = None) -> ConversationSummary | None:
        """The newest summary that has not expired, of one agent if given; `None` if there is none."""
        check_id("conversation_id", conversation_id)
        wanted = None if agent is None else text_to_column(check_id("agent", agent))
        now = time_to_column(datetime.now(UTC))
        found = await self._fetch(_NEWEST, (conversation_id, wanted, now), summaries_from)
        return found[0] if found else None

    async def list_summaries(
        self, conversation_id: str, *, before: int | None = None, limit: int = 100
    ) -> list[ConversationSummary]:
        """A page of all stored summaries, newest first, including expired ones.

        `before` is the version of the last summary on the previous page.
        """
        check_id("conversation_id", conversation_id)
        latest = _LATEST if before is None else check_count("before", before)
        return await self._fetch(_LIST, (conversation_id, latest, check_limit(limit)), summaries_from)

    async def delete(self, conversation_id: str) -> int:
        """Delete all summaries of a conversation and return their number."""
        check_id("conversation_id", conversation_id)
        return await self._write(partial(_delete, conversation_id))

    async def purge_expired(self) -> int:
        """Delete the expired summaries and return their number."""
        now, purged = time_to_column(datetime.now(UTC)), 0
        # In batches, so that other writers get the write lock in between.
        while some := await self._write(partial(_purge, now)):
            purged += some
        return purged


# --- transactions ---


def _add(summary: ConversationSummary) -> Script[ConversationSummary]:
    rows = yield Statement(_NEXT_VERSION, (summary.conversation_id,))
    added = replace(summary, version=int(rows[0][0]))
    yield Statement(_ADD, to_row(added))
    return added


def _delete(conversation_id: str) -> Script[int]:
    yield Statement(_FORGET_VERSION, (conversation_id,))
    rows = yield Statement(_DELETE, (conversation_id,))
    return len(rows)


def _purge(now: str) -> Script[int]:
    rows = yield Statement(_PURGE, (now, _DELETED_AT_ONCE))
    return len(rows)


# --- arguments ---


def _checked_summary(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, not {type(text).__name__}")
    if not text.strip():
        raise ValueError("text must not be empty")
    return text


def _counted(name: str, value: object) -> int:
    return check_count(name, value) or 0


def _expiry(now: datetime, ttl: float | None, expires_at: datetime | None) -> datetime | None:
    if ttl is None:
        return check_time("expires_at", expires_at)
    if expires_at is not None:
        raise ValueError("give ttl or expires_at, not both")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        raise TypeError(f"ttl must be a number of seconds, not {type(ttl).__name__}")
    if not 0 < ttl < math.inf:
        raise ValueError(f"ttl must be more than 0 seconds, and it is {ttl}")
    try:
        return now + timedelta(seconds=ttl)
    except OverflowError as error:
        raise ValueError(f"ttl must end before the year 10000, and it is {ttl:g} seconds") from error
