"""What is stored: realistic items, and files full of them."""

import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

from .raw import SCHEMA, encode

Item = dict[str, Any]
SESSION = "conversation-1"


def make_turn(number: int) -> list[Item]:
    """A turn with a tool call, as the SDK's Runner stores it: five items of 200 to 250 bytes each."""
    call_id = f"call_{number:024d}"
    return [
        {
            "role": "user",
            "content": f"Where is my order {number}? It was promised for Tuesday, but the tracking page has"
            " not moved since Friday, and I need the parcel before I leave on Thursday morning. Please look.",
        },
        {
            "id": f"rs_{number:024d}",
            "summary": [
                {
                    "text": "The user asks about a late order and has a deadline. Look the order up first.",
                    "type": "summary_text",
                }
            ],
            "type": "reasoning",
            "status": "completed",
        },
        {
            "arguments": f'{{"order_id": {number}, "include": ["shipment", "events", "estimated_delivery"]}}',
            "call_id": call_id,
            "name": "look_up_order",
            "type": "function_call",
            "id": f"fc_{number:024d}",
            "status": "completed",
        },
        {
            "call_id": call_id,
            "output": f'{{"order_id": {number}, "status": "in transit", "carrier": "DHL", "last_event":'
            ' "left the sorting centre in Leipzig", "estimated_delivery": "2025-11-19"}',
            "type": "function_call_output",
        },
        {
            "id": f"msg_{number:024d}",
            "content": [
                {
                    "annotations": [],
                    "text": f"Order {number} left Leipzig today and should arrive on Wednesday.",
                    "type": "output_text",
                    "logprobs": [],
                }
            ],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        },
    ]


def make_items(number: int) -> list[Item]:
    """So many items of a conversation."""
    return list(islice(_conversation(), number))


def _conversation() -> Iterator[Item]:
    for turn in count(1):
        yield from make_turn(turn)


class Workspace:
    """A directory with the files of a run. Every contender gets a copy of the same file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._templates: dict[tuple[tuple[str, int], ...], Path] = {}
        self._numbers = count(1)

    def new_path(self) -> Path:
        """Where no file is yet."""
        return self._directory / f"{next(self._numbers)}.db"

    def copy_of(self, histories: Mapping[str, int]) -> Path:
        """A file of its own, with so many items for each session id, flushed to the disk.

        Flushed, because what the kernel still has to write would disturb the writes to be measured.
        """
        key = tuple(histories.items())
        if key not in self._templates:
            self._templates[key] = _write_template(self.new_path(), histories)
        path = self.new_path()
        shutil.copyfile(self._templates[key], path)
        with path.open("rb+") as file:
            os.fsync(file)
        return path


def _write_template(path: Path, histories: Mapping[str, int]) -> Path:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("BEGIN")
    for statement in SCHEMA:
        connection.execute(statement)
    for session_id, number in histories.items():
        connection.execute("INSERT INTO agent_sessions (session_id) VALUES (?)", (session_id,))
        connection.executemany(
            "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)",
            ((session_id, encode(item).decode()) for item in islice(_conversation(), number)),
        )
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    return path
