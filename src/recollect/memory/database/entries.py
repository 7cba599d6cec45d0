"""The rows of entries, their evidence and their terms."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ...ids import new_id
from ...sql.columns import StoredTime, json_to_column, text_to_column, time_as_text, time_to_column
from ...sql.description import Table
from ...sql.scripts import Row, Script, Statement, insert, run_all
from ..entry import ContentType, Entry, Evidence, check_type
from ..metadata import metadata_to_column
from ..tags import tags_from_column, tags_to_column
from ..texts.terms import terms
from . import memories
from .corruption import (
    or_none,
    readable,
    stored_count,
    stored_date,
    stored_id,
    stored_number,
    stored_object,
    stored_text,
    stored_time,
)
from .dialect import Dialect
from .schema import CONTENTS, EVIDENCE, INSTRUCTIONS, MESSAGES, REJECTED_ENTRIES, TERMS

_COLUMNS = (
    "content_id, memory_id, content_type, content_text, content_data, confidence, learned_at, valid_from,"
    " valid_to, retired_at, superseded_by, said_at, slot, metadata, tags, expires_at, last_confirmed_at,"
    " rejected_at, position"
)
_LIVE = "retired_at IS NULL"
_NOT_EXPIRED = "(expires_at IS NULL OR expires_at > ?3)"
_AT = f"learned_at <= ?3 AND (retired_at IS NULL OR retired_at > ?3) AND {_NOT_EXPIRED}"
_FROM = f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE memory_id = ?1 AND position > ?2 AND"
_PAGE = "ORDER BY position LIMIT ?4"
# All take the same parameters. `READ_LIVE` takes the current time, and `READ_ALL` ignores it.
READ_LIVE = f"{_FROM} {_LIVE} AND {_NOT_EXPIRED} {_PAGE}"
READ_NEWEST = (
    f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE memory_id = ?1 AND {_LIVE}"
    " AND (expires_at IS NULL OR expires_at > ?2) ORDER BY position DESC LIMIT ?3"
)
READ_AS_OF = f"{_FROM} {_AT} {_PAGE}"
MEMORY_OF = f"SELECT memory_id FROM {CONTENTS.name} WHERE content_id = ?1 AND tenant = ?2"
READ_ONE = f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE content_id = ?1 AND tenant = ?2"
READ_IN_ANY_TENANT = f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE content_id = ?1"
READ_EQUAL = f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE memory_id = ?1 AND text_key = ?2 AND {_LIVE}"
READ_LEARNED = (
    f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE memory_id = ?1 AND run_id = ?2 AND {_LIVE}"
    " ORDER BY position LIMIT ?3"
)
MOST_REJECTED = 500
"""How many rejected entries of a memory are compared with a new text, the newest ones."""
READ_REJECTED = (
    f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE memory_id = ?1 AND {REJECTED_ENTRIES}"
    " ORDER BY position DESC LIMIT ?2"
)
READ_INSTRUCTIONS = (
    f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE memory_id = ?1 AND {INSTRUCTIONS} AND {_LIVE}"
    f" AND {_NOT_EXPIRED} ORDER BY position DESC LIMIT ?2"
)
RETIRED_IDS = (
    f"SELECT content_id FROM {CONTENTS.name} WHERE memory_id = ?1 AND retired_at IS NOT NULL"
    " AND rejected_at IS NULL ORDER BY retired_at DESC LIMIT ?2"
)
EXPIRED_IN_MEMORY = (
    f"SELECT content_id FROM {CONTENTS.name} WHERE memory_id = ?1 AND expires_at <= ?2 AND {_LIVE}"
)
EXPIRED_OF_TENANT = (
    f"SELECT content_id FROM {CONTENTS.name} WHERE tenant = ?1 AND expires_at < ?2 AND {_LIVE}"
    " ORDER BY expires_at LIMIT ?3"
)
READ_ALL = f"{_FROM} CAST(?3 AS TIMESTAMPTZ) IS NOT NULL {_PAGE}"


def of_type(query: str) -> str:
    """One of these statements, for the entries of one type: the fifth parameter."""
    return query.replace(_PAGE, f"AND content_type = ?5 {_PAGE}")


# An entry is current until its successor is known, and never ends before it begins.
_BOTH = f"FROM {CONTENTS.name} AS each WHERE each.content_id IN (?1, ?3)"
_RETIRE = (
    f"UPDATE {CONTENTS.name} SET retired_at = CASE WHEN EXISTS (SELECT 1 {_BOTH} AND each.learned_at > ?2)"
    f" THEN (SELECT max(each.learned_at) {_BOTH}) ELSE ?2 END, superseded_by = ?3,"
    " valid_to = coalesce(valid_to, CAST(?4 AS VARCHAR))"
    f" WHERE content_id = ?1 AND {_LIVE} AND memory_id = ?5 RETURNING position"
)
# Each time that something is said again, half of the doubt goes.
_SAID_AGAIN = (
    f"UPDATE {CONTENTS.name} SET said_at = ?2, last_confirmed_at = ?2,"
    " confidence = confidence + (1 - confidence) / 2 WHERE content_id = ?1 AND memory_id = ?3"
    " AND (said_at IS NULL OR said_at < ?2)"
)
_SAID_EARLIER = (
    f"UPDATE {CONTENTS.name} SET learned_at = ?2 WHERE content_id = ?1 AND memory_id = ?3 AND learned_at > ?2"
)
NOT_OF_EDIT = (
    "(cited.source <> '' OR NOT EXISTS"
    f" (SELECT 1 FROM {CONTENTS.name} AS before WHERE before.superseded_by = cited.content_id))"
)
"""A condition for evidence that an edit has not taken over from the edited entry."""
_REJECT = f"UPDATE {CONTENTS.name} SET retired_at = ?2, rejected_at = ?2 WHERE content_id = ?1"
_CONFIRM = (
    f"UPDATE {CONTENTS.name} SET confidence = 1.0, last_confirmed_at = ?2,"
    " retired_at = NULL, rejected_at = NULL, expires_at ="
    " CASE WHEN expires_at <= ?2 THEN NULL ELSE expires_at END WHERE content_id = ?1"
)
_DELETE_TERMS = f"DELETE FROM {TERMS.name} WHERE memory_id = ?1 AND position = ?2"
_MOST_TERMS = 64  # of an entry

# Words that nearly every entry has: a lookup by them would find everything.
_COMMON = frozenset(
    terms(
        "the user users a an and or but of to in on at for with from by as is are was were be been has have"
        " had do does did that this these those it its they them their said says say about not no so than"
        " then there here will would can could should may might 用户"
    )
)


@dataclass(frozen=True)
class NewEntry:
    """An entry to be written."""

    content_type: ContentType
    text: str = field(repr=False)
    confidence: float = 1.0
    valid_from: str | None = None
    valid_to: str | None = None
    slot: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    evidence: tuple[tuple[str, str], ...] = ()
    """Pairs of conversation id and message id, the best first."""
    supersedes: tuple[str, ...] = ()
    said_at: datetime | None = None
    superseded_by: str | None = None
    """A known entry that was said later. This one was valid before it."""
    known_from: datetime | None = None
    """Since when it is known, if that is before it is written: when it was said."""
    known_until: datetime | None = None
    """When the entry that supersedes it was said."""
    content_id: str = field(default_factory=new_id)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tags: tuple[str, ...] = field(default=(), repr=False)
    learned_by: str | None = None
    """The run that learned it, if it is not the run that writes it; empty if a person wrote it."""
    remains_of: str | None = None
    """The entry that stated this beside another fact, and that is superseded now."""
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Support:
    """More evidence for an existing entry, and the wording of that evidence."""

    content_id: str
    wording: str = field(repr=False)
    evidence: tuple[tuple[str, str], ...]
    said_at: datetime | None = None
    learned_by: str | None = None
    """As in `NewEntry`."""
    known_from: datetime | None = None
    """When it was said, if that is before the entry is known so far."""


@dataclass(frozen=True)
class Changes:
    """The changes of a stage to a memory."""

    added: tuple[NewEntry, ...] = ()
    supported: tuple[Support, ...] = ()
    superseded: tuple[tuple[str, str | None], ...] = ()
    """Existing entries that supersede others: pairs of the superseded and the superseding id, which is
    missing where nothing takes the place of an entry."""

    def __bool__(self) -> bool:
        return bool(self.added or self.supported or self.superseded)

    @property
    def supersedes(self) -> bool:
        """Whether entries are superseded."""
        return bool(self.superseded or any(entry.supersedes for entry in self.added))


def change(
    tenant: str, memory_id: str, run_id: str | None, changes: Changes, now: StoredTime
) -> Script[None]:
    """Change a memory. Nothing is overwritten: superseded and retired entries stay, but are not current."""
    if not changes:
        return
    first = yield from memories.advance(memory_id, now, len(changes.added))
    target = Target(tenant, memory_id, run_id, now)
    yield from run_all(insert(CONTENTS, _content_rows(target, changes, first)))
    yield from run_all(insert(EVIDENCE, _evidence_of(target, changes), or_nothing=True))
    yield from index(tenant, memory_id, _indexed(changes, first))
    for support in changes.supported:
        if support.said_at is not None:
            yield Statement(_SAID_AGAIN, (support.content_id, time_to_column(support.said_at), memory_id))
    yield from run_all(said_earlier(memory_id, changes))
    yield from supersede(memory_id, changes, now)


@dataclass(frozen=True)
class Target:
    """The memory that changes are written to, the run that writes them, and the time."""

    tenant: str
    memory_id: str
    run_id: str | None
    now: StoredTime


def _content_rows(target: Target, changes: Changes, first: int) -> list[dict[str, Any]]:
    return [_content_row(target, entry, place) for place, entry in enumerate(changes.added, first)]


def _evidence_of(target: Target, changes: Changes) -> list[dict[str, Any]]:
    cited: Iterable[NewEntry | Support] = (*changes.added, *changes.supported)
    return [row for each in cited for row in _evidence_rows(target, each)]


def _indexed(changes: Changes, first: int) -> list[tuple[int, str]]:
    """The positions and the texts of the new entries that are current."""
    placed = enumerate(changes.added, first)
    return [(place, entry.text) for place, entry in placed if entry.superseded_by is None]


def said_earlier(memory_id: str, changes: Changes) -> list[Statement]:
    """Statements that move back the time since when entries are known, to that of an older message."""
    return [
        Statement(_SAID_EARLIER, (each.content_id, time_to_column(each.known_from), memory_id))
        for each in changes.supported
        if each.known_from is not None
    ]


def supersede(memory_id: str, changes: Changes, now: StoredTime) -> Script[None]:
    """Retire the entries that changes supersede, from the time at which that was said."""
    for entry in changes.added:
        for target in entry.supersedes:
            said = _earlier(entry.known_from, now)
            yield from _retire(memory_id, target, said, entry.content_id, entry.valid_from)
    times = {entry.content_id: entry.known_from for entry in changes.added}
    times |= {support.content_id: support.said_at for support in changes.supported}
    for target, by in changes.superseded:
        yield from _retire(memory_id, target, _earlier(times.get(by or ""), now), by, None)


def _earlier(time: datetime | None, now: StoredTime) -> StoredTime:
    """A time that is not after now; now if there is none."""
    return now if time is None else min(time_to_column(time), time_as_text(now))


def index(tenant: str, memory_id: str, texts: Iterable[tuple[int, str]]) -> Script[None]:
    """Store the terms of entries. By these they are found when something similar is learned."""
    rows = [
        {"memory_id": memory_id, "tenant": tenant, "term": term, "position": place}
        for term, place in _terms_of(texts)
    ]
    yield from run_all(insert(TERMS, rows, or_nothing=True))


def _terms_of(texts: Iterable[tuple[int, str]]) -> list[tuple[str, int]]:
    return [(term, place) for place, text in texts for term in distinctive_terms(text)[:_MOST_TERMS]]


def _retire(
    memory_id: str, content_id: str, now: StoredTime, superseded_by: str | None, until: str | None
) -> Script[None]:
    rows = yield Statement(_RETIRE, (content_id, now, superseded_by, until, memory_id))
    for (position,) in rows:
        yield Statement(_DELETE_TERMS, (memory_id, position))


def reject(memory_id: str, content_id: str, position: int, now: StoredTime) -> Script[None]:
    """Retire an entry as rejected. Its memory is locked."""
    yield from memories.advance(memory_id, now, 0)
    yield Statement(_REJECT, (content_id, now))
    yield Statement(_DELETE_TERMS, (memory_id, position))


def confirm(tenant: str, entry: Entry, position: int, now: StoredTime) -> Script[None]:
    """Confirm an entry. A rejected one is current again, and an expiry in the past is removed."""
    yield from memories.advance(entry.memory_id, now, 0)
    yield Statement(_CONFIRM, (entry.content_id, now))
    if entry.retired_at is not None:
        yield from index(tenant, entry.memory_id, [(position, entry.text)])


def _content_row(target: Target, entry: NewEntry, position: int) -> dict[str, Any]:
    return {
        "content_id": entry.content_id,
        "tenant": target.tenant,
        "memory_id": target.memory_id,
        "position": position,
        "content_type": entry.content_type,
        "content_text": text_to_column(entry.text),
        "content_data": json_to_column(dict(entry.data)),
        "text_key": text_key(entry.text),
        "slot": entry.slot and slot_key(entry.slot),
        "confidence": entry.confidence,
        "learned_at": _earlier(entry.known_from, target.now),
        "valid_from": entry.valid_from,
        "said_at": entry.said_at and time_to_column(entry.said_at),
        "valid_to": entry.valid_to,
        "retired_at": entry.superseded_by and _earlier(entry.known_until, target.now),
        "superseded_by": entry.superseded_by,
        "run_id": _learned_by(entry, target.run_id) or None,
        "metadata": metadata_to_column(entry.metadata),
        "tags": tags_to_column(entry.tags),
        "expires_at": entry.expires_at and time_to_column(entry.expires_at),
    }


def _evidence_rows(target: Target, of: NewEntry | Support) -> list[dict[str, Any]]:
    wording = of.text if isinstance(of, NewEntry) else of.wording
    return [
        {
            "content_id": of.content_id,
            "tenant": target.tenant,
            "conversation_id": conversation_id,
            "message_id": message_id,
            "source": _learned_by(of, target.run_id),
            "place": place,
            "wording": text_to_column(wording),
        }
        for place, (conversation_id, message_id) in enumerate(of.evidence)
    ]


def _learned_by(of: NewEntry | Support, run_id: str | None) -> str:
    return (run_id or "") if of.learned_by is None else of.learned_by


def distinctive_terms(text: str) -> list[str]:
    """The terms that distinguish a text from others, each once."""
    return [term for term in dict.fromkeys(terms(text)) if term not in _COMMON]


def slot_key(slot: str) -> str:
    """The key by which entries of the same slot are found."""
    return slot.encode("utf-8", "replace").decode().replace("\0", " ")[:100]


def text_key(text: str) -> str:
    """A key that is equal for texts that differ in spaces and case only."""
    return hashlib.sha256(" ".join(text.lower().split()).encode("utf-8", "surrogatepass")).hexdigest()


# --- reading ---


_FOUND_COLUMNS = ", ".join(f"found.{column}" for column in _COLUMNS.split(", "))
_WIDTH = len(_COLUMNS.split(", "))
_ORIGINS_IN_ORDER = "is_evidence, origin_of, first_said, source, place"
_CITED = "cited.content_id, cited.conversation_id, cited.message_id, cited.source"
_FIRST_SAID = "min(said.created_at) OVER (PARTITION BY cited.content_id, cited.source)"
_IN_ORDER = f"cited.content_id, {_FIRST_SAID}, cited.source, cited.place"


def _evidence(among: str, which: str) -> str:
    return (
        f"FROM {EVIDENCE.name} AS cited LEFT JOIN {MESSAGES.name} AS said"
        " ON said.conversation_id = cited.conversation_id AND said.message_id = cited.message_id"
        f" WHERE cited.content_id {among} AND {which}"
    )


class EntryQueries:
    """The statements that find entries by many ids at once, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        ids = dialect.each.format("?1")
        among = dialect.among.format(f"SELECT value FROM {ids} AS wanted")
        pair = ", ".join(dialect.element.format("wanted.value", place) for place in (0, 1))
        self.superseded_messages = (
            "SELECT cited.conversation_id, cited.message_id"
            f" FROM {dialect.each.format('?1')} AS wanted JOIN {EVIDENCE.name} AS cited"
            f" ON (cited.conversation_id, cited.message_id) = ({pair})"
            f" JOIN {CONTENTS.name} AS entry ON entry.content_id = cited.content_id"
            " WHERE cited.tenant = ?2 AND entry.superseded_by IS NOT NULL"
        )
        self.cited = f"SELECT {_CITED} {_evidence(among, 'TRUE')} ORDER BY {_IN_ORDER}"
        # An edit is its own evidence: the messages linked to it belong to the edited entry.
        origins = (
            "SELECT 1 AS is_evidence, cited.content_id AS origin_of, cited.conversation_id, cited.message_id,"
            f" cited.source, {_FIRST_SAID} AS first_said, cited.place {_evidence(among, NOT_OF_EDIT)}"
            " UNION ALL"
            f" SELECT 0, superseded_by, content_id, NULL, NULL, NULL, NULL FROM {CONTENTS.name}"
            f" WHERE superseded_by {among}"
        )
        self.origins = f"{origins} ORDER BY {_ORIGINS_IN_ORDER}"
        """The evidence of entries, in order, and the entries that they superseded."""
        self.whole_by_ids = (
            f"SELECT {_FOUND_COLUMNS}, origins.* FROM {CONTENTS.name} AS found"
            f" LEFT JOIN ({origins}) AS origins ON origin_of = found.content_id"
            f" WHERE found.tenant = ?2 AND found.content_id {among} ORDER BY {_ORIGINS_IN_ORDER}"
        )
        """Entries, each in as many rows as it has origins, or in one."""
        self._set_related(dialect, ids)
        is_new = f"CAST({dialect.element.format('value', len(_EVIDENCE_ROW))} AS BIGINT) = 1"
        known = f"SELECT 1 FROM {CONTENTS.name} WHERE content_id = {dialect.element.format('value', 0)}"
        self._add_evidence = _add_from_json(
            dialect,
            EVIDENCE,
            dict.fromkeys(_EVIDENCE_ROW, "VARCHAR") | {"place": "BIGINT"},
            f"{is_new} OR EXISTS ({known})",
        )
        said_at = dialect.time.format(dialect.element.format("value", 1))
        self._said_again = (
            f"UPDATE {CONTENTS.name} SET said_at = given.said, last_confirmed_at = given.said,"
            " confidence = confidence + (1 - confidence) / 2 FROM"
            f" (SELECT {dialect.element.format('value', 0)} AS id, {said_at} AS said"
            f" FROM {dialect.each.format('?1')} AS each) AS given"
            " WHERE content_id = given.id AND memory_id = ?2 AND (said_at IS NULL OR said_at < given.said)"
        )
        self._add_terms = _add_from_json(
            dialect, TERMS, dict.fromkeys(_TERM_ROW, "VARCHAR") | {"position": "BIGINT"}
        )

    def additions(self, target: Target, changes: Changes, first: int) -> list[Statement]:
        """Statements that add the new entries and all evidence; `first` is the first free position.

        The memory must be locked. Evidence for an entry that no longer exists is left out.

        Their texts are few, whatever the number of rows: a server prepares each of them once.
        """
        found = [
            *insert(CONTENTS, _content_rows(target, changes, first)),
            _from_json(self._add_evidence, self._evidence_values(target, changes)),
            _from_json(
                self._add_terms,
                [
                    (target.memory_id, target.tenant, term, place)
                    for term, place in _terms_of(_indexed(changes, first))
                ],
            ),
        ]
        return [each for each in found if each is not None]

    @staticmethod
    def _evidence_values(target: Target, changes: Changes) -> list[list[Any]]:
        added = {entry.content_id for entry in changes.added}
        rows = (list(row.values()) for row in _evidence_of(target, changes))
        return [[*row, int(row[0] in added)] for row in rows]

    def said_again(self, memory_id: str, changes: Changes) -> list[Statement]:
        """Statements that confirm the entries which were said again. Each changes an entry once."""
        rounds: list[dict[str, str]] = []
        for support in changes.supported:
            if support.said_at is not None:
                place = sum(support.content_id in each for each in rounds)
                rounds += [{}] if place == len(rounds) else []
                rounds[place][support.content_id] = time_to_column(support.said_at)
        return [Statement(self._said_again, (json.dumps(list(each.items())), memory_id)) for each in rounds]

    def _set_related(self, dialect: Dialect, ids: str) -> None:
        """The statements that find entries about the same subject."""
        # Only the newest entries of each term: the cost must not grow with the memory.
        newest = (
            f"SELECT position FROM {TERMS.name} WHERE memory_id = ?2 AND term = wanted.value"
            " ORDER BY position DESC LIMIT ?3"
        )
        # One value per term forces a lookup by the key, whatever the statistics of the database say.
        self.by_terms = (
            f"SELECT value, (SELECT {dialect.joined.format('position')} FROM ({newest}) AS newest)"
            f" FROM {ids} AS wanted"
        )
        places = dialect.each.format("?2")
        self.by_positions = (
            f"SELECT {_COLUMNS} FROM {CONTENTS.name} WHERE memory_id = ?1 AND {_LIVE}"
            f" AND position {dialect.among.format(f'SELECT CAST(value AS BIGINT) FROM {places} AS wanted')}"
        )
        slots = dialect.each.format("?3")
        self.by_positions_or_slots = (
            f"{self.by_positions} UNION ALL SELECT {_COLUMNS} FROM {CONTENTS.name}"
            f" WHERE memory_id = ?1 AND {_LIVE}"
            f" AND slot {dialect.among.format(f'SELECT value FROM {slots} AS wanted')}"
        )


_EVIDENCE_ROW = ("content_id", "tenant", "conversation_id", "message_id", "source", "place", "wording")
_TERM_ROW = ("memory_id", "tenant", "term", "position")


def _add_from_json(dialect: Dialect, table: Table, types: Mapping[str, str], which: str = "true") -> str:
    """Adds the rows of a JSON list of lists that meet a condition, without those whose key exists."""
    values = (
        f"CAST({dialect.element.format('value', place)} AS {kind})"
        for place, kind in enumerate(types.values())
    )
    return (
        f"INSERT INTO {table.name} ({', '.join(types)}) SELECT {', '.join(values)}"
        f" FROM {dialect.each.format('?1')} AS given WHERE {which} ON CONFLICT DO NOTHING"
    )


def _from_json(sql: str, rows: Sequence[Sequence[Any]]) -> Statement | None:
    return Statement(sql, (json.dumps(rows),)) if rows else None


def entries_from(rows: list[Row]) -> list[tuple[int, Entry]]:
    """Entries with their positions, without evidence. Corrupt rows are left out."""
    return readable(CONTENTS.name, rows, lambda row: (stored_count(row[-1]), _from_row(row)))


class Origins(NamedTuple):
    """By the ids of entries: their evidence, and the entries that they superseded."""

    evidence: Mapping[str, Sequence[Evidence]]
    superseded: Mapping[str, Sequence[str]]


def whole_entries_from(rows: Sequence[Row]) -> dict[str, Entry]:
    """Entries with their evidence, by their ids, from rows of `whole_by_ids`. Corrupt rows are left out."""
    origins = origins_from([row[_WIDTH:] for row in rows if row[_WIDTH] is not None])
    each_once = {row[0]: row[:_WIDTH] for row in rows}
    found = readable(CONTENTS.name, list(each_once.values()), lambda row: _from_row(row, origins))
    return {entry.content_id: entry for entry in found}


def _from_row(row: Row, origins: Origins | None = None) -> Entry:
    content_id, memory_id, kind, text, data, confidence, learned, since, until, *rest, _ = row
    retired, superseded_by, said, slot, metadata, tags, expires, confirmed, rejected = rest
    return Entry(
        content_id,
        memory_id,
        check_type(kind),
        stored_text(text),
        stored_time(learned),
        stored_number(confidence),
        or_none(stored_time)(said),
        stored_date(since),
        stored_date(until),
        or_none(stored_time)(retired),
        superseded_by,
        tuple(origins.superseded.get(content_id, ())) if origins else (),
        tuple(origins.evidence.get(content_id, ())) if origins else (),
        data=stored_object(data),
        slot=slot,
        metadata=or_none(stored_object)(metadata) or {},
        tags=tags_from_column(tags),
        expires_at=or_none(stored_time)(expires),
        last_confirmed_at=or_none(stored_time)(confirmed),
        rejected_at=or_none(stored_time)(rejected),
    )


def evidence_from(rows: Sequence[Row]) -> dict[str, list[Evidence]]:
    """Evidence by the ids of entries, without corrupt rows."""
    found: dict[str, list[Evidence]] = {}
    for content_id, evidence in readable(EVIDENCE.name, rows, _evidence_from, key=(0, 1, 2)):
        found.setdefault(content_id, []).append(evidence)
    return found


def _evidence_from(row: Row) -> tuple[str, Evidence]:
    content_id, conversation_id, message_id, source = row
    return content_id, Evidence(stored_id(conversation_id), stored_id(message_id), source or None)


def origins_from(rows: Sequence[Row]) -> Origins:
    """The origins of entries, without corrupt rows."""
    evidence = evidence_from([row[1:5] for row in rows if row[0]])
    superseded: dict[str, list[str]] = {}
    for is_evidence, content_id, replaced, *_ in rows:
        if not is_evidence:
            superseded.setdefault(content_id, []).append(replaced)
    return Origins(evidence, superseded)
