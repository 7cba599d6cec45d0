"""mem0 2.x: its history file, the files of its embedded vector store, and the JSON of its API.

The embedded store (Qdrant) keeps points as pickles. They are read without running anything: only the class of
a point is known, and it is read as plain values.
"""

import io
import pickle
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ...errors import ImportFormatError
from ..chats import text_or_none
from ..kinds import ReadOptions
from ..records import Read, Record, Skipped, stable_id
from ..sources import Value, as_utf8, read_array

_OWN = (
    "data",
    "hash",
    "user_id",
    "agent_id",
    "run_id",
    "created_at",
    "updated_at",
    "text_lemmatized",
    "memory",
)
_FAULTS = (pickle.UnpicklingError, EOFError, AttributeError, TypeError, ValueError, IndexError, KeyError)
_HISTORY = (
    "SELECT memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted FROM history"
    " ORDER BY memory_id, coalesce(updated_at, created_at), rowid"
)
_MESSAGES = (
    "SELECT session_scope, id, role, content, name, created_at FROM messages"
    " ORDER BY session_scope, created_at"
)


def open_source(source: str, options: ReadOptions) -> Read:
    """Read a folder of mem0, its history file, its vector store, or the JSON of its API."""
    path = Path(source)
    if path.is_dir():
        return _read_folder(path, options)
    with path.open("rb") as file:
        is_database = file.read(15) == b"SQLite format 3"
    return _read_files([path], options) if is_database else _read_json(path, options)


def _read_folder(path: Path, options: ReadOptions) -> Read:
    files = [*sorted(path.rglob("storage.sqlite")), *sorted(path.rglob("history.db"))]
    if not files:
        raise ImportFormatError(f"{path} has neither history.db nor the files of a Qdrant store")
    return _read_files(files, options)


def _read_files(files: list[Path], options: ReadOptions) -> Read:
    """The current memories first: they say whose the history is."""
    current: dict[str, Mapping[str, Any]] = {}
    histories = []
    for path in files:
        with closing(_connect(path)) as connection:
            tables = {row[0] for row in _rows(path, connection, "SELECT name FROM sqlite_master")}
            if "points" in tables:
                for memory_id, payload in _points(path, connection):
                    if isinstance(payload, Skipped):
                        yield payload
                    else:
                        current[memory_id] = payload
            if "history" in tables:
                histories.append(path)
            if not tables & {"points", "history"}:
                raise ImportFormatError(f"{path} is not a file of mem0: it has neither points nor history")
    told: set[str] = set()
    for path in histories:
        with closing(_connect(path)) as connection:
            for memory_id, events in _by_memory(_rows(path, connection, _HISTORY)):
                told.add(memory_id)
                yield from _with_history(memory_id, events, current.get(memory_id), options, str(path.name))
            yield from _conversations(path, connection, options)
    for memory_id, payload in current.items():
        if memory_id not in told:
            yield _entry(memory_id, payload, options, f"memory {memory_id}")


def _connect(path: Path) -> sqlite3.Connection:
    # A batch may be read in another thread than the one before.
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _rows(path: Path, connection: sqlite3.Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    try:
        yield from connection.execute(sql)
    except sqlite3.Error as error:
        raise ImportFormatError(
            f"{path} cannot be read as a file of mem0 ({type(error).__name__})"
        ) from error


# --- the embedded vector store ---


class _Point:
    """A point of Qdrant, read without its package."""

    def __init__(self, *_: object) -> None:
        self.state: Mapping[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.state = state.get("__dict__", state) if isinstance(state, dict) else {}


class _PointReader(pickle.Unpickler):
    """Unpickles points and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """The class of a point. Any other one is refused, since it could run code."""
        if module.startswith("qdrant_client.") and name == "PointStruct":
            return _Point
        raise pickle.UnpicklingError("not a point")


def _points(path: Path, connection: sqlite3.Connection) -> Iterator[tuple[str, Mapping[str, Any] | Skipped]]:
    for number, (_, stored) in enumerate(_rows(path, connection, "SELECT id, point FROM points"), 1):
        where = f"{path.name}, point {number}"
        try:
            point = _PointReader(io.BytesIO(stored)).load()
            payload, point_id = point.state["payload"], str(point.state["id"])
        except _FAULTS:
            yield where, Skipped(where, "it is not a point of Qdrant that can be read")
            continue
        if isinstance(payload, Mapping) and text_or_none(payload.get("data")):
            yield point_id, payload
        else:
            yield where, Skipped(where, "points without a memory", is_lost=False)


# --- history ---


def _by_memory(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    memory_id, events = None, list[tuple[Any, ...]]()
    for row in rows:
        if row[0] != memory_id and memory_id is not None:
            yield str(memory_id), events
            events = []
        memory_id = row[0]
        events.append(row)
    if memory_id is not None:
        yield str(memory_id), events


def _with_history(
    memory_id: str,
    events: list[tuple[Any, ...]],
    payload: Mapping[str, Any] | None,
    options: ReadOptions,
    name: str,
) -> Iterator[Record | Skipped]:
    """A memory, and each of its earlier texts as an entry that was superseded."""
    where = f"{name}, memory {memory_id}"
    texts = [(row[2], row[5] or row[4]) for row in events if row[3] != "DELETE" and text_or_none(row[2])]
    deleted = next((row[5] or row[4] for row in events if row[3] == "DELETE"), None)
    if payload is not None and (not texts or texts[-1][0] != payload["data"]):
        texts.append((payload["data"], payload.get("updated_at") or payload.get("created_at")))
    known = {"user_id": options.user_id, **(payload or {})}
    ids = [stable_id(options.tenant, "mem0", memory_id, number) for number in range(len(texts))]
    if texts and payload is not None:
        ids[-1] = stable_id(options.tenant, "mem0", memory_id)
    for place, (text, time) in enumerate(texts):
        is_last = place == len(texts) - 1
        entry = _entry(
            memory_id, {**known, "data": text, "created_at": time, "updated_at": time}, options, where
        )
        entry.data["content_id"] = ids[place]
        if not is_last:
            entry.data.update(retired_at=texts[place + 1][1], superseded_by=ids[place + 1])
        elif deleted is not None:
            entry.data["retired_at"] = deleted
        yield entry


def _entry(memory_id: str, payload: Mapping[str, Any], options: ReadOptions, where: str) -> Record:
    more = payload.get("metadata") if isinstance(payload.get("metadata"), Mapping) else {}
    extra = {name: value for name, value in {**payload, **(more or {})}.items() if name not in _OWN}
    for name in (
        "metadata",
        "categories",
        "id",
        "score",
        "role",
        "actor_id",
        "created",
        "structured_attributes",
    ):
        extra.pop(name, None)
    categories = payload.get("categories") or (more or {}).get("categories") or ()
    tags = [str(tag) for tag in categories] if isinstance(categories, list | tuple) else [str(categories)]
    time = payload.get("updated_at") or payload.get("created_at")
    about = {"source": "mem0", "source_id": memory_id, "run_id": payload.get("run_id"), **extra}
    data = {
        "content_id": stable_id(options.tenant, "mem0", memory_id),
        "user_id": payload.get("user_id") or options.user_id,
        "agent_id": options.agent_id or payload.get("agent_id"),
        "text": payload.get("data") or payload.get("memory"),
        "learned_at": time,
        "said_at": payload.get("created_at") or time,
        "tags": tags,
        "metadata": {name: value for name, value in about.items() if value is not None},
    }
    return Record("entries", {name: value for name, value in data.items() if value is not None}, where)


def _conversations(path: Path, connection: sqlite3.Connection, options: ReadOptions) -> Read:
    """The recent messages that mem0 keeps for each user, agent and run."""
    tables = {row[0] for row in _rows(path, connection, "SELECT name FROM sqlite_master")}
    if "messages" not in tables:
        return
    scopes: dict[str, list[dict[str, Any]]] = {}
    for scope, message_id, role, content, name, created in _rows(path, connection, _MESSAGES):
        message = {
            "message_id": message_id,
            "role": role,
            "content": content,
            "name": name,
            "created_at": created,
        }
        scopes.setdefault(str(scope), []).append(message)
    for scope, messages in scopes.items():
        named = dict(re.findall(r"(user_id|agent_id|run_id)=([^&]+)", scope))
        data = {
            "conversation_id": stable_id(options.tenant, "mem0", "messages", scope),
            "user_id": named.get("user_id") or options.user_id,
            "agent_id": options.agent_id or named.get("agent_id"),
            "metadata": {"source": "mem0", **named},
            "messages": messages,
        }
        yield Record("conversations", data, f"{path.name}, messages of a session")


# --- the API ---


def _read_json(path: Path, options: ReadOptions) -> Read:
    """The answer of `get_all` of its API or library: `{"results": [...]}`, or the list itself."""
    with path.open("rb") as file, as_utf8(file) as text:
        for value in read_array(path.name, text):
            yield value if isinstance(value, Skipped) else _from_api(value, options)


def _from_api(value: Value, options: ReadOptions) -> Record | Skipped:
    memory = value.data
    if not isinstance(memory, Mapping) or not text_or_none(memory.get("memory")):
        return Skipped(value.where, "it is not a memory of mem0: it has no text under memory")
    memory_id = str(memory.get("id") or stable_id(memory["memory"], memory.get("created_at")))
    return _entry(memory_id, memory, options, value.where)
