"""Imports a file, or writes the same rows with `sqlite3` alone; prints the figures as JSON."""

import asyncio
import json
import resource
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

PER_TALK = 20  # messages
_TEXT = "We talked about the trip to Lisbon, the river, the light, and what to pack for three days in May. "


def talks(messages: int) -> Iterator[dict[str, Any]]:
    """Conversations of 20 messages of about 200 characters, of a hundred users."""
    for number in range(messages // PER_TALK):
        said = [
            {
                "role": ("user", "assistant")[place % 2],
                "content": f"{number}/{place}: {_TEXT * 2}",
                "created_at": f"2024-{number % 12 + 1:02}-{number % 28 + 1:02}T10:{place:02}:00Z",
            }
            for place in range(PER_TALK)
        ]
        owner = {
            "agent_id": "assistant",
            "user_id": f"user {number % 100}",
            "conversation_id": f"talk {number}",
        }
        yield {**owner, "created_at": said[0]["created_at"], "messages": said}


def write_source(path: Path, messages: int) -> None:
    """The file to import."""
    with path.open("w") as file:
        for talk in talks(messages):
            file.write(json.dumps({"kind": "conversations", "data": talk}) + "\n")


async def run_import(source: str, target: str) -> int:
    """Import with the importer, as the command does."""
    from recollect.memory.store import MemoryStore
    from recollect.moving.importer import Importer
    from recollect.moving.kinds import ReadOptions, kind_named

    async with MemoryStore(target, workers=0, embedder=None) as store:
        report = await Importer(store).run(kind_named("jsonl").read(source, ReadOptions()))
    assert report.is_complete
    return report.added["messages"]


async def run_raw(source: str, target: str) -> int:
    """The same with `sqlite3` alone."""
    return await asyncio.to_thread(_insert_messages, source, target)


def _insert_messages(source: str, target: str) -> int:
    """Parse the lines and insert the messages into a table with one index: the least that anyone does."""
    count = 0
    with closing(sqlite3.connect(target)) as connection, Path(source).open() as file:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE said (talk TEXT, place INTEGER, role TEXT, content TEXT, time TEXT)")
        connection.execute("CREATE UNIQUE INDEX of_talk ON said (talk, place)")
        for number, line in enumerate(file):
            talk = json.loads(line)["data"]
            rows = [
                (talk["conversation_id"], place, each["role"], each["content"], each["created_at"])
                for place, each in enumerate(talk["messages"])
            ]
            connection.executemany("INSERT INTO said VALUES (?, ?, ?, ?, ?)", rows)
            count += len(rows)
            if number % 100 == 99:
                connection.commit()
        connection.commit()
    return count


def main() -> None:
    """Run one of them and print its figures as JSON."""
    what, source, target = sys.argv[1:]
    started, worked = perf_counter(), process_time()
    count = asyncio.run({"import": run_import, "raw": run_raw}[what](source, target))
    figures = {
        "messages per second": count / (perf_counter() - started),
        "messages per CPU second": count / (process_time() - worked),
        "peak memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
