"""What these tests share: lines, imports of them, and what a store then holds."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from recollect.memory.store import MemoryStore
from recollect.moving.importer import Importer
from recollect.moving.kinds import ReadOptions, kind_named
from recollect.moving.records import ImportReport, Record, Skipped


def store_at(url: str, **options: Any) -> MemoryStore:
    return MemoryStore(url, **{"workers": 0, "embedder": None, **options})


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def talk(number: int, count: int = 4, **more: Any) -> dict[str, Any]:
    """A line with a conversation, some years ago."""
    messages = [
        {
            "role": ("user", "assistant")[place % 2],
            "content": f"message {place} of conversation {number}",
            "created_at": f"2023-01-{number % 27 + 1:02}T10:{place % 60:02}:00Z",
        }
        for place in range(count)
    ]
    heading = {"agent_id": "assistant", "user_id": f"user {number % 3}", "conversation_id": f"talk {number}"}
    time = {"created_at": f"2023-01-{number % 27 + 1:02}T10:00:00Z"}
    return {"kind": "conversations", "data": {**heading, **time, "messages": messages, **more}}


async def import_records(url: str, records: Sequence[Record | Skipped], **options: Any) -> ImportReport:
    async with store_at(url) as store:
        return await Importer(store, **options).run(records)


async def import_from(kind: str, source: object, url: str, **options: Any) -> ImportReport:
    """Import as the command does."""
    learn = options.pop("learn", False)
    reading = ReadOptions(**{"user_id": "ada", **options})
    async with store_at(url) as store:
        importer = Importer(
            store, agent_id=reading.agent_id or "assistant", user_id=reading.user_id, learn=learn
        )
        return await importer.run(kind_named(kind).read(str(source), reading))


def rows_in(path: str | Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def reasons(report: ImportReport) -> list[str]:
    return [problem.reason for problem in report.problems]
