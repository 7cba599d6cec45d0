"""Why an entry is known: the messages it was learned from, the run that wrote it, and its history."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...sql.scripts import Row
from ..database import entries, runs
from ..database.access import MemoryDatabase
from ..database.corruption import or_none, readable, stored_text, stored_time
from ..database.schema import CONTENTS, EVIDENCE, MESSAGES, RUNS
from ..entry import EDITED, EDITED_BY, Entry, by_succession
from ..times import format_time

_QUOTES = (
    "SELECT said.conversation_id, said.message_id, said.role, said.content, said.created_at, cited.source,"
    " said.name"
    f" FROM {EVIDENCE.name} cited JOIN {CONTENTS.name} entry ON entry.content_id = cited.content_id"
    f" JOIN {MESSAGES.name} said ON said.conversation_id = cited.conversation_id"
    " AND said.message_id = cited.message_id AND said.tenant = cited.tenant"
    # Evidence may name any message: only messages of the same memory are quoted.
    " AND said.memory_id = entry.memory_id"
    f" WHERE cited.content_id = ?1 AND cited.tenant = ?2 AND {entries.NOT_OF_EDIT}"
    " ORDER BY cited.source, cited.place"
)
_WAS_LINKED = (
    f"SELECT 1 FROM {EVIDENCE.name} cited WHERE cited.content_id = ?1 AND cited.tenant = ?2"
    f" AND NOT {entries.NOT_OF_EDIT} LIMIT 1"
)
_WRITTEN_BY = f"SELECT run_id FROM {CONTENTS.name} WHERE content_id = ?1 AND tenant = ?2"


@dataclass(frozen=True)
class Quote:
    """A message that an entry was learned from, word for word."""

    conversation_id: str
    message_id: str
    role: str
    content: str = field(repr=False)
    created_at: datetime
    run_id: str | None
    name: str | None = field(default=None, repr=False)
    """The name of the participant who said it, if one is given."""

    @property
    def speaker(self) -> str:
        """The name of the participant, or the role where no name is given."""
        return self.name or self.role

    def to_dict(self) -> dict[str, Any]:
        """The quote as a JSON object."""
        return {**vars(self), "created_at": format_time(self.created_at)}


@dataclass(frozen=True)
class Origin:
    """The run that wrote an entry."""

    run_id: str
    model: str | None
    conversation_id: str
    finished_at: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """The origin as a JSON object."""
        return {**vars(self), "finished_at": self.finished_at and format_time(self.finished_at)}


@dataclass(frozen=True)
class Edit:
    """The edit that wrote an entry. It is the evidence of that entry."""

    edited_by: str | None
    """The person or API key that made the edit; `None` if it was not recorded."""
    edited_at: datetime
    content_id: str
    """The edited entry, which has the messages it was learned from."""

    def to_dict(self) -> dict[str, Any]:
        """The edit as a JSON object."""
        return {**vars(self), "edited_at": format_time(self.edited_at)}


@dataclass(frozen=True)
class Why:
    """An entry and the reasons for it."""

    entry: Entry
    evidence: tuple[Quote, ...]
    """The messages that support this wording, without erased ones."""
    origin: Origin | None
    """`None` where a person wrote the entry."""
    supersedes: tuple[Entry, ...]
    """All entries that it replaced, the latest first."""
    superseded_by: tuple[Entry, ...]
    """The entry that replaced it, the entry that replaced that one, and so on."""
    edit: Edit | None = None
    """The edit that wrote this wording; `None` if it was not edited."""

    def to_dict(self) -> dict[str, Any]:
        """The reasons as a JSON object."""
        return {
            "entry": self.entry.to_dict(),
            "evidence": [quote.to_dict() for quote in self.evidence],
            "origin": self.origin and self.origin.to_dict(),
            "edit": self.edit and self.edit.to_dict(),
            "supersedes": [entry.to_dict() for entry in self.supersedes],
            "superseded_by": [entry.to_dict() for entry in self.superseded_by],
        }


async def explain(database: MemoryDatabase, tenant: str, content_id: str) -> Why | None:
    """The reasons for an entry; `None` if it does not exist."""
    found = await _entries(database, tenant, [content_id])
    if not found:
        return None
    entry = found[0]
    quotes = await quotes_of(database, tenant, content_id)
    origin = await _origin(database, tenant, entry)
    return Why(
        entry,
        quotes,
        origin,
        await _precursors(database, tenant, entry),
        await _successors(database, tenant, entry),
        await _edit(database, tenant, entry) if origin is None else None,
    )


async def quotes_of(database: MemoryDatabase, tenant: str, content_id: str) -> tuple[Quote, ...]:
    """The messages of the same memory that an entry was learned from."""
    return await database.fetch(_QUOTES, (content_id, tenant), _quotes_from)


async def _edit(database: MemoryDatabase, tenant: str, entry: Entry) -> Edit | None:
    """The edit that wrote an entry. In earlier releases an edit is known by the evidence it took over."""
    if not entry.supersedes:
        return None
    is_edit = entry.data.get(EDITED) or await database.fetch(_WAS_LINKED, (entry.content_id, tenant), bool)
    edited_by = entry.data.get(EDITED_BY)
    return Edit(edited_by, entry.learned_at, entry.supersedes[0]) if is_edit else None


async def _entries(database: MemoryDatabase, tenant: str, ids: Sequence[str]) -> list[Entry]:
    found: list[Entry] = []
    for content_id in ids:
        rows = await database.fetch(entries.READ_ONE, (content_id, tenant), entries.entries_from)
        found += [entry for _, entry in rows]
    return await database.with_evidence(found)


async def _precursors(database: MemoryDatabase, tenant: str, entry: Entry) -> tuple[Entry, ...]:
    found: dict[str, Entry] = {}
    waiting = list(entry.supersedes)
    while waiting:
        new = [content_id for content_id in waiting if content_id not in found]
        for precursor in await _entries(database, tenant, new):
            found[precursor.content_id] = precursor
        waiting = [each for content_id in new if content_id in found for each in found[content_id].supersedes]
    return tuple(reversed(by_succession(found.values())))


async def _successors(database: MemoryDatabase, tenant: str, entry: Entry) -> tuple[Entry, ...]:
    found: dict[str, Entry] = {}
    following = entry.superseded_by
    while following is not None and following not in found:
        rows = await _entries(database, tenant, [following])
        if not rows:
            break
        found[following] = rows[0]
        following = rows[0].superseded_by
    return tuple(found.values())


async def _origin(database: MemoryDatabase, tenant: str, entry: Entry) -> Origin | None:
    ((run_id,),) = await database.fetch(_WRITTEN_BY, (entry.content_id, tenant), list[Row]) or [(None,)]
    rows = await database.fetch(runs.READ, (run_id, tenant), list[Row]) if run_id else []
    mine = (row for row in rows if runs.RunRow(*row).memory_id == entry.memory_id)
    return next(iter(readable(RUNS.name, mine, _origin_of)), None)


def _origin_of(row: Row) -> Origin:
    run = runs.RunRow(*row)
    return Origin(run.run_id, run.model, run.conversation_id, or_none(stored_time)(run.finished_at))


def _quotes_from(rows: list[Row]) -> tuple[Quote, ...]:
    return tuple(readable(MESSAGES.name, rows, _quote_from, key=(0, 1)))


def _quote_from(row: Row) -> Quote:
    conversation_id, message_id, role, content, at, source, name = row
    said = (role, stored_text(content), stored_time(at))
    return Quote(conversation_id, message_id, *said, source or None, name)
