"""The import of an export: conversations, memories, entries with their evidence, and runs.

The export is parsed and validated before anything is written, and it is written in one transaction. A time in
the future is replaced by the time of the import, and is counted.
"""

import json
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ConflictError, ImportFormatError
from ...ids import new_id
from ...models.values import MOST_TOKENS
from ...sql.columns import text_from_column, time_to_column
from ...sql.description import Table
from ...sql.scripts import Script, Statement, insert, run_all
from ..conversation import Conversation, messages_in
from ..database import entries, memories, records
from ..database.access import MemoryDatabase
from ..database.schema import CONTENTS, CONVERSATIONS, EVIDENCE, FAILURES, MEMORIES, MESSAGES, RUNS, STAGES
from ..entry import CONTENT_TYPES
from ..memory import Memory
from ..pipeline.stages import CONSOLIDATION
from ..pipeline.stages import STAGES as EACH_RUN
from ..times import latest_allowed
from .records import LARGEST, read_learn_at, to_row

Rows = dict[str, list[dict[str, Any]]]

IMPORTED = "import"
"""The source of evidence that came from another system, in place of the run that found it."""
_TIMES = ("created_at", "said_at", "learned_at", "last_confirmed_at", "rejected_at")
_STAGES = (*EACH_RUN, CONSOLIDATION)
_OPEN = ("pending", "running")
_STATUSES = (*_OPEN, "done", "failed")
# In the order of writing: parents before their children.
_TABLES = (MEMORIES, CONVERSATIONS, MESSAGES, RUNS, STAGES, FAILURES, CONTENTS, EVIDENCE)
_UNIQUE = (
    (MEMORIES, "memory_id"),
    (CONVERSATIONS, "conversation_id"),
    (RUNS, "run_id"),
    (CONTENTS, "content_id"),
)
_UNIQUE_WITHIN = (
    (MEMORIES, ("owner_key",)),
    (MESSAGES, ("conversation_id", "message_id")),
    (RUNS, ("memory_id", "sequence")),
    (STAGES, ("run_id", "stage")),
    (FAILURES, ("run_id", "attempt")),
    (CONTENTS, ("memory_id", "position")),
    (EVIDENCE, EVIDENCE.key),
)
# References to rows of other tables, which must belong to the same memory.
_REFERENCES = (
    (CONTENTS, "superseded_by", CONTENTS, "content_id"),
    (CONTENTS, "run_id", RUNS, "run_id"),
    (RUNS, "conversation_id", CONVERSATIONS, "conversation_id"),
)


@dataclass(frozen=True)
class ParsedExport:
    """The rows of an export, by table."""

    tenant: str
    now: str
    rows: Rows

    latest: str = field(default_factory=lambda: time_to_column(latest_allowed()))
    corrected: Counter[str] = field(default_factory=Counter)
    """How many rows of each table had a time in the future."""

    def add(self, table: Table, row: Mapping[str, Any]) -> None:
        """Add a row to the tenant's rows of a table."""
        ahead = {name: self.now for name in _TIMES if (row.get(name) or "") > self.latest}
        self.corrected[table.name] += bool(ahead)
        self.rows[table.name].append({**row, **ahead, "tenant": self.tenant})

    def of(self, table: Table) -> list[dict[str, Any]]:
        """The rows of a table."""
        return self.rows[table.name]


def empty_export(tenant: str, now: str) -> ParsedExport:
    """An export without rows."""
    return ParsedExport(tenant, now, {table.name: [] for table in _TABLES})


def parse_export(exported: Mapping[str, Any], tenant: str, now: str) -> ParsedExport:
    """Parse and validate an export. An `ImportFormatError` names the first invalid field."""
    if not isinstance(exported, Mapping):
        raise ImportFormatError(f"an export must be an object, not {type(exported).__name__}")
    export = empty_export(tenant, now)
    entries_given = list(_listed(exported, "entries"))
    with_entries = {_memory_of(entry) for _, entry in entries_given}
    for where, memory in _listed(exported, "memories"):
        _read_memory(export, where, memory, _memory_of(memory) not in with_entries)
    for where, conversation in _listed(exported, "conversations"):
        _read_conversation(export, where, conversation)
    for where, entry in entries_given:
        _read_entry(export, where, entry)
    for where, run in _listed(exported, "runs"):
        read_run(export, where, run)
    _check_user(export, exported.get("user_id"))
    _check_references(export)
    _place_memories(export)
    return export


def _listed(exported: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    given = exported.get(name, [])
    if not isinstance(given, list):
        raise ImportFormatError(f"{name} must be a list, not {type(given).__name__}")
    for place, each in enumerate(given):
        if not isinstance(each, Mapping):
            raise ImportFormatError(f"{name}[{place}] must be an object, not {type(each).__name__}")
    return [(f"{name}[{place}]", each) for place, each in enumerate(given)]


def _memory_of(record: Mapping[str, Any]) -> str | None:
    """The `memory_id` of a record, if it is a text. It is validated when the record is read."""
    given = record.get("memory_id")
    return given if isinstance(given, str) else None


# --- memories and entries ---


def _read_memory(export: ParsedExport, where: str, record: Mapping[str, Any], makes_entries: bool) -> None:
    """Read a memory. With `makes_entries`, its lists of texts become entries."""
    try:
        memory = Memory.from_dict(record)
    except (TypeError, ValueError) as error:
        raise ImportFormatError(f"{where} is no memory: {error}") from error
    if memory.version > LARGEST:
        raise ImportFormatError(f"version of {where} must be at most {LARGEST}")
    _add_memory(export, memory)
    position = 0
    for kind in CONTENT_TYPES if makes_entries else ():
        for text in getattr(memory, f"{kind}_content"):
            made = {"content_type": kind, "content_text": text, "memory_id": memory.memory_id}
            _read_entry(export, where, {**made, "position": position})
            position += 1


def _add_memory(export: ParsedExport, memory: Memory) -> None:
    # A random stamp: a cached copy of an erased memory with this id must not pass for the imported one.
    stamp = secrets.randbelow(2**48)
    export.add(
        MEMORIES,
        {
            "memory_id": memory.memory_id,
            "agent_id": memory.agent_id,
            "user_id": memory.user_id,
            "owner_key": memories.owner_key(export.tenant, memory.agent_id, memory.user_id),
            "user_key": memories.user_key(export.tenant, memory.user_id),
            "created_at": time_to_column(memory.created_at),
            "updated_at": time_to_column(memory.updated_at),
            "version": memory.version,
            "entries_stamp": stamp,
            "turns_stamp": stamp,
        },
    )


def _read_entry(export: ParsedExport, where: str, record: Mapping[str, Any]) -> None:
    made = {"content_id": new_id(), "content_data": {}, "confidence": 1.0, "learned_at": export.now}
    row = to_row(CONTENTS, {**made, **record}, where)
    if row["content_type"] not in CONTENT_TYPES:
        raise ImportFormatError(f"content_type of {where} must be one of {', '.join(CONTENT_TYPES)}")
    text = text_from_column(row["content_text"])
    export.add(CONTENTS, {**row, "text_key": entries.text_key(text)})
    for name, cited in _listed(record, "evidence"):
        given = {"place": 0, "source": "", "wording": text, **cited, "content_id": row["content_id"]}
        export.add(EVIDENCE, to_row(EVIDENCE, given, f"{name} of {where}"))


# --- conversations and runs ---


def _read_conversation(export: ParsedExport, where: str, record: Mapping[str, Any]) -> None:
    try:
        conversation = Conversation.from_dict(record)
    except (AttributeError, TypeError, ValueError) as error:
        raise ImportFormatError(f"{where} is no conversation: {error}") from error
    indexes = _indexes(where, record, conversation)
    given = conversation.to_dict()
    made = {
        **given,
        "memory_id": conversation.memory_id or _memory_for(export, conversation),
        "updated_at": given["created_at"],
    }
    stored = {name: value for name, value in record.items() if value is not None}
    row = to_row(
        CONVERSATIONS, {**made, "next_index": 0, **stored, "conversation_id": made["conversation_id"]}, where
    )
    if row["memory_injection"] not in (None, "true", "false"):
        raise ImportFormatError(f"memory_injection of {where} must be true or false, as text")
    following = max([row["next_index"], *(n + 1 for n in indexes)])
    learn_at = read_learn_at(record, row, conversation.created_at, where)
    export.add(CONVERSATIONS, {**row, "next_index": following, "learn_at": learn_at})
    for index, message in zip(indexes, given["messages"], strict=True):
        belongs = {name: row[name] for name in ("conversation_id", "memory_id")}
        said = {**message, **belongs, "message_index": index}
        export.add(MESSAGES, to_row(MESSAGES, said, where))


def _indexes(where: str, record: Mapping[str, Any], conversation: Conversation) -> list[int]:
    """The indexes of the messages, as they are given: an erased message leaves a gap."""
    given = enumerate(messages_in(record))
    indexes = [message.get("message_index", place) for place, message in given]
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in indexes):
        raise ImportFormatError(f"message_index in {where} must be a whole number from 0 on")
    if indexes != sorted(set(indexes)) or len(indexes) != conversation.turn_count:
        raise ImportFormatError(f"messages of {where} must be in the order of message_index")
    return indexes


def _memory_for(export: ParsedExport, conversation: Conversation) -> str:
    """The memory of the agent and user of a conversation without `memory_id`. It is added if missing."""
    key = memories.owner_key(export.tenant, conversation.agent_id, conversation.user_id)
    for row in export.of(MEMORIES):
        if row["owner_key"] == key:
            return str(row["memory_id"])
    memory = Memory(conversation.agent_id, conversation.user_id, created_at=conversation.created_at)
    _add_memory(export, memory)
    return memory.memory_id


def read_run(export: ParsedExport, where: str, record: Mapping[str, Any]) -> None:
    """Add a run with its stages and failures. An `ImportFormatError` names the first invalid field."""
    row = to_row(RUNS, record, where)
    if row["status"] not in _STATUSES:
        raise ImportFormatError(f"status of {where} must be one of {', '.join(_STATUSES)}")
    if row["first_index"] > row["last_index"]:
        raise ImportFormatError(f"first_index of {where} must not come after last_index")
    export.add(RUNS, {**row, "is_open": int(row["status"] in _OPEN)})
    for table, name in ((STAGES, "stages"), (FAILURES, "failures")):
        for place, each in _listed(record, name):
            stage = to_row(table, {**each, "run_id": row["run_id"]}, f"{place} of {where}")
            if stage["stage"] not in _STAGES:
                raise ImportFormatError(f"stage of {place} of {where} must be one of {', '.join(_STAGES)}")
            _check_tokens(stage, f"{place} of {where}")
            export.add(table, stage)


def _check_tokens(stage: Mapping[str, Any], where: str) -> None:
    for name in ("prompt_tokens", "completion_tokens"):
        if stage[name] > MOST_TOKENS:
            raise ImportFormatError(f"{name} of {where} must be at most {MOST_TOKENS}")


# --- consistency ---


def _check_user(export: ParsedExport, user_id: object) -> None:
    """Check that the export holds the data of one user only."""
    named = {row["user_id"] for table in (MEMORIES, CONVERSATIONS) for row in export.of(table)}
    if len(named) > 1 or (user_id is not None and any(each != user_id for each in named)):
        raise ImportFormatError("an export must hold the data of one user")


def _check_references(export: ParsedExport) -> None:
    owners = {row["memory_id"]: (row["agent_id"], row["user_id"]) for row in export.of(MEMORIES)}
    for row in export.of(CONVERSATIONS):
        if owners.get(row["memory_id"]) != (row["agent_id"], row["user_id"]):
            raise ImportFormatError("memory_id of a conversation must be the memory of its agent and user")
    for table in (CONTENTS, RUNS):
        if {row["memory_id"] for row in export.of(table)} - owners.keys():
            raise ImportFormatError(
                f"memory_id in {table.name} refers to a row that the export does not hold"
            )
    for table, columns in (*((table, (key,)) for table, key in _UNIQUE), *_UNIQUE_WITHIN):
        if len(_values(export, table, *columns)) < len(export.of(table)):
            raise ImportFormatError(f"two rows of {table.name} have the same {' and '.join(columns)}")
    for table, column, parent, key in _REFERENCES:
        named = {each for each in _values(export, table, "memory_id", column) if each[1] is not None}
        if named - _values(export, parent, "memory_id", key):
            raise ImportFormatError(f"{column} in {table.name} refers to a row that the export does not hold")
    _check_evidence(export)


def _values(export: ParsedExport, table: Table, *columns: str) -> set[tuple[Any, ...]]:
    return {tuple(row[column] for column in columns) for row in export.of(table)}


def _check_evidence(export: ParsedExport) -> None:
    """Check that entries cite messages of their own memory only."""
    memory_of = {row["content_id"]: row["memory_id"] for row in export.of(CONTENTS)}
    said = _values(export, MESSAGES, "memory_id", "conversation_id", "message_id")
    made = _values(export, RUNS, "memory_id", "run_id")
    for row in export.of(EVIDENCE):
        memory_id = memory_of[row["content_id"]]
        if (memory_id, row["conversation_id"], row["message_id"]) not in said:
            raise ImportFormatError("evidence cites a message that the export does not hold")
        if row["source"] not in ("", IMPORTED) and (memory_id, row["source"]) not in made:
            raise ImportFormatError("source of evidence refers to a run that the export does not hold")


def _place_memories(export: ParsedExport) -> None:
    """Set the position of the next entry of each memory, after all imported entries."""
    following: dict[str, int] = {}
    for row in export.of(CONTENTS):
        following[row["memory_id"]] = max(following.get(row["memory_id"], 0), row["position"] + 1)
    for row in export.of(MEMORIES):
        row["next_position"] = following.get(row["memory_id"], 0)


# --- the transaction ---


def write_export(database: MemoryDatabase, export: ParsedExport) -> Script[dict[str, int]]:
    """Write all rows. Raises `ConflictError` if one of them exists already."""
    yield from _check_free(database, export)
    for table in _TABLES:
        yield from run_all(insert(table, export.of(table)))
    for memory in export.of(MEMORIES):
        yield Statement(records.ADD_OF_MEMORY, (memory["memory_id"],))
        texts = [
            (row["position"], text_from_column(row["content_text"]))
            for row in export.of(CONTENTS)
            if row["memory_id"] == memory["memory_id"] and row["retired_at"] is None
        ]
        yield from entries.index(export.tenant, memory["memory_id"], texts)
    for memory_id in {row["memory_id"] for row in export.of(RUNS) if row["is_open"]}:
        yield Statement(database.queue.enqueue, (memory_id, export.tenant))
    named = {"memories": MEMORIES, "entries": CONTENTS, "conversations": CONVERSATIONS, "messages": MESSAGES}
    counts = {name: len(export.of(table)) for name, table in {**named, "runs": RUNS}.items()}
    corrected = export.corrected.total()
    return {**counts, "future_times_corrected": corrected} if corrected else counts


def _check_free(database: MemoryDatabase, export: ParsedExport) -> Script[None]:
    ids = database.dialect.each.format("?1")
    for table, key in (*_UNIQUE, (MEMORIES, "owner_key")):
        given = json.dumps([row[key] for row in export.of(table)])
        if (yield Statement(f"SELECT 1 FROM {table.name} WHERE {key} IN {ids} LIMIT 1", (given,))):
            raise ConflictError(f"{table.name} has rows of this export already, or of this agent and user")
