"""The database of long-term memory: transactions and queries on its tables."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from ...sql.columns import time_to_column
from ...sql.database import SQLStore
from ...sql.scripts import Decode, Engine, MakeScript, NotifyingEngine, Row, Script, Statement
from ..conversation import Message
from ..entry import Entry
from ..lifetime import is_expired
from ..times import now
from . import conversations, entries
from .dialect import POSTGRESQL, dialect_of
from .entries import EntryQueries
from .labels import LabelQueries
from .overviews import OverviewQueries
from .pages import OutlineQueries
from .queue_queries import QueueQueries
from .quiet_period import QuietQueries
from .recording import RecordingQueries
from .removal import RemovalQueries
from .run_queries import RunQueries
from .schema import MemorySchema

T = TypeVar("T")

_NEWEST_OF_TERM = 20  # entries that are read for each term
_BEST_OF_TEXT = 6  # entries that are returned for each text
_MOST_LEARNED = 200  # entries of a run that are merged with others


class MemoryDatabase(SQLStore):
    """Runs transactions and queries on the tables of long-term memory."""

    schema = MemorySchema()

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)
        self.dialect = dialect_of(self._database.dialect)
        self.queue = QueueQueries(self.dialect)
        self.quiet = QuietQueries(self.dialect)
        self.runs = RunQueries(self.dialect)
        self.outlines = OutlineQueries(self.dialect)
        self.overviews = OverviewQueries(self.dialect)
        self.entries = EntryQueries(self.dialect)
        self.labels = LabelQueries(self.dialect)
        self.turns = conversations.by_ids(self.dialect)
        self.messages_by_id = conversations.in_conversation(self.dialect)
        self.removal = RemovalQueries(self.dialect)
        self.recording = RecordingQueries(self.dialect, self.queue)

    async def prepared(self) -> Engine:
        """The engine, after the tables are created or checked."""
        return await self._prepared()

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in its own transaction."""
        return await self._write(make_script)

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query."""
        return await self._fetch(sql, parameters, decode)

    @property
    def can_notify(self) -> bool:
        """Whether processes on this database can notify each other."""
        return self.dialect is POSTGRESQL and isinstance(self._database.engine, NotifyingEngine)

    def listen(
        self, channel: str, on_notice: Callable[[], None]
    ) -> AbstractAsyncContextManager[asyncio.Event]:
        """Call a function at each notification in a channel. The event is set when the connection is lost."""
        engine = self._database.engine
        assert isinstance(engine, NotifyingEngine)
        return engine.listen(channel, on_notice)

    async def with_evidence(self, found: Sequence[Entry]) -> list[Entry]:
        """Entries with their evidence and the ids of the entries that they superseded."""
        if not found:
            return []
        ids = json.dumps([entry.content_id for entry in found])
        evidence, superseded = await self._fetch(self.entries.origins, (ids,), entries.origins_from)
        return [
            replace(
                entry,
                evidence=tuple(evidence.get(entry.content_id, ())),
                supersedes=tuple(superseded.get(entry.content_id, ())),
            )
            for entry in found
        ]

    async def entries_by_id(self, tenant: str, ids: Sequence[str]) -> dict[str, Entry]:
        """Entries with their evidence, by their ids."""
        if not ids:
            return {}
        wanted = (json.dumps(list(ids)), tenant)
        return await self._fetch(self.entries.whole_by_ids, wanted, entries.whole_entries_from)

    async def superseded_messages(
        self, tenant: str, keys: Iterable[tuple[str, str]]
    ) -> frozenset[tuple[str, str]]:
        """The messages among some, by conversation id and message id, whose entries were superseded."""
        wanted = json.dumps([json.dumps(list(each)) for each in sorted(keys)])
        rows = await self._fetch(self.entries.superseded_messages, (wanted, tenant), list)
        return frozenset((conversation_id, message_id) for conversation_id, message_id in rows)

    async def turns_by_id(
        self, tenant: str, ids: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[Message, str, str, str, str]]:
        """Messages with their conversation, session, agent and user, by conversation id and message id."""
        wanted = json.dumps([json.dumps(list(each)) for each in ids])
        rows = await self._fetch(self.turns, (tenant, wanted), list) if ids else []
        return {
            (row[0], row[4]): (message, *row[:4])
            for row in rows
            for message in conversations.messages_from([row[4:]])
        }

    async def related(self, memory_id: str, texts: Sequence[str], slots: Iterable[str] = ()) -> list[Entry]:
        """The entries of a memory about the same subjects as texts, in the order in which they were learned.

        Entries are found by the terms they share with a text, rare terms first, and by their slots. The cost
        does not depend on the size of the memory.
        """
        wanted = [entries.distinctive_terms(text) for text in texts]
        terms = sorted({term for each in wanted for term in each})
        postings = await self._postings(memory_id, terms) if terms else {}
        places = sorted({place for each in wanted for place in _best(each, postings)})
        keys = sorted(set(map(entries.slot_key, slots)))
        if not places and not keys:
            return []
        found = await self._fetch(
            self.entries.by_positions_or_slots,
            (memory_id, json.dumps(places), json.dumps(keys)),
            entries.entries_from,
        )
        return _not_expired(dict(sorted(found, key=itemgetter(0))).values())

    def related_within(self, memory_id: str, text: str) -> Script[list[Entry]]:
        """The entries about the same subject as a text, or with the same text, within a transaction."""
        terms = entries.distinctive_terms(text)
        rows = yield Statement(self.entries.by_terms, (json.dumps(terms), memory_id, _NEWEST_OF_TERM))
        places = _best(terms, _postings_from(rows))
        found = yield Statement(self.entries.by_positions, (memory_id, json.dumps(places)))
        equal = yield Statement(entries.READ_EQUAL, (memory_id, entries.text_key(text)))
        by_position = dict(entries.entries_from([*equal, *found]))
        return _not_expired(by_position[place] for place in sorted(by_position))

    def learned_with_related(self, memory_id: str, run_id: str) -> Script[list[Entry]]:
        """The current entries that a run has learned, and those about the same, with evidence."""
        rows = yield Statement(entries.READ_LEARNED, (memory_id, run_id, _MOST_LEARNED))
        learned = [entry for _, entry in entries.entries_from(rows)]
        found = {entry.content_id: entry for entry in learned}
        for entry in learned:
            for related in (yield from self.related_within(memory_id, entry.text)):
                found.setdefault(related.content_id, related)
        cited = entries.evidence_from((yield Statement(self.entries.cited, (json.dumps(list(found)),))))
        return [replace(each, evidence=tuple(cited.get(each.content_id, ()))) for each in found.values()]

    async def _postings(self, memory_id: str, terms: Sequence[str]) -> dict[str, list[int]]:
        parameters = (json.dumps(terms), memory_id, _NEWEST_OF_TERM)
        return await self._fetch(self.entries.by_terms, parameters, _postings_from)


def _not_expired(found: Iterable[Entry]) -> list[Entry]:
    """The entries that still hold. One that is said again after it expired becomes a new entry."""
    at = now()
    return [entry for entry in found if not is_expired(entry, at)]


def _postings_from(rows: list[Row]) -> dict[str, list[int]]:
    return {term: list(map(int, places.split(","))) for term, places in rows if places}


def _best(terms: Sequence[str], postings: Mapping[str, Sequence[int]]) -> list[int]:
    """The entries that share most with a text. A rare term counts more than a common one."""
    scores: dict[int, float] = {}
    for term in terms:
        places = postings.get(term, ())
        for place in places:
            scores[place] = scores.get(place, 0.0) + 1 / len(places)
    return sorted(scores, key=lambda place: (-scores[place], -place))[:_BEST_OF_TEXT]


def column_now() -> str:
    """The current time as a column value."""
    return time_to_column(now())
