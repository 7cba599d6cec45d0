"""Backups that are made while others write, and what is in them once they are restored."""

import asyncio
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeAlias

from recollect import ConversationManager
from recollect.memory.store import MemoryStore
from recollect.migrations import migrate
from recollect.testing.servers.postgres import PostgresServer

from ...sessions.postgres.database import sql
from .postgres_tools import folder_of_tools, run_tool

Record: TypeAlias = Callable[[dict[str, Any]], object]

_CLIENTS = 3
_AGENT = "assistant"
_numbers = count()


@dataclass
class Written:
    """What the clients have asked for and what was acknowledged, by client, in their order."""

    asked: list[int] = field(default_factory=lambda: [0] * _CLIENTS)
    acknowledged: list[int] = field(default_factory=lambda: [0] * _CLIENTS)


class Writers:
    """Clients, each of which records one conversation after the other, until they are stopped."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._ended = False
        self._threads = [threading.Thread(target=self._write, args=(each,)) for each in range(_CLIENTS)]
        self.written = Written()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, count: int) -> list[int]:
        """Wait until each client has so many acknowledged; how many they have by then."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or min(self.written.acknowledged) >= count, 300)
            acknowledged = list(self.written.acknowledged)
        assert min(acknowledged) >= count, f"{acknowledged} were acknowledged, and {count} each were awaited"
        return acknowledged

    def _write(self, client: int) -> None:
        try:
            self._write_until_stopped(client)
        finally:
            with self._changed:
                self._ended = True  # by itself, if one could not write: nobody need wait for it
                self._changed.notify_all()

    def _write_until_stopped(self, client: int) -> None:
        while not self._stopping.is_set():
            number = self.written.asked[client]
            self.written.asked[client] += 1
            self._record(_conversation(client, number))
            with self._changed:
                self.written.acknowledged[client] += 1
                self._changed.notify_all()


@contextmanager
def recording(url: str) -> Iterator[Record]:
    """A program that records, and how something is recorded with it."""
    with closing(ConversationManager(url, workers=0, embedder=None)) as manager:
        yield lambda said: manager.record_conversation(**said)


def _conversation(client: int, number: int) -> dict[str, Any]:
    texts = [f"I sail boat {number}.", f"Part two of {number}."]
    messages = [{"role": "user", "content": text} for text in texts]
    return {"agent_id": _AGENT, "user_id": f"client-{client}", "messages": messages}


# --- what is in a copy ---


async def look_at_copy(url: str, before: list[int], written: Written) -> list[str]:
    """What does not hold of a copy.

    It has what was acknowledged before, whole, and is of one moment.
    """
    wrong = list[str]()
    async with MemoryStore(url, workers=0, embedder=None) as store:
        for client in range(_CLIENTS):
            exported = await store.export_user(f"client-{client}")
            recorded = sorted(exported["conversations"], key=lambda each: each["created_at"])
            found = [[part["content"] for part in each["conversation_data"]["messages"]] for each in recorded]
            expected = [_texts(client, number) for number in range(len(found))]
            if found != expected:
                wrong.append(f"client {client}: not the first conversations, each whole and in order")
            if not before[client] <= len(found) <= written.asked[client]:
                wrong.append(f"client {client}: {len(found)} conversations, {before[client]} acknowledged")
            if {run["conversation_id"] for run in exported["runs"]} != {
                each["conversation_id"] for each in exported["conversations"]
            }:
                wrong.append(f"client {client}: a conversation without its run")
    return wrong


def _texts(client: int, number: int) -> list[str]:
    return [message["content"] for message in _conversation(client, number)["messages"]]


# --- making one while others write ---


@dataclass
class Backups:
    """Makes backups while others write, and looks at what comes back."""

    writes: int
    """That are there when a backup begins; others follow while it is made."""
    used: Callable[[str], AbstractContextManager[Record]]
    """How a database is used meanwhile."""
    made: int = 0
    findings: list[str] = field(default_factory=list)

    def of_file(self, folder: Path) -> None:
        """A SQLite file by `recollect backup`."""
        url, copy = str(folder / "served.db"), folder / "copy.db"
        self._make(url, lambda: back_up_by_command(url, copy), lambda: str(copy))

    def by_dump(self, server: str, folder: Path) -> None:
        """A PostgreSQL by `recollect backup`, which runs pg_dump, and pg_restore."""
        dump = folder / "copy.dump"
        with _migrated(server) as url, new_database(server) as empty:
            self._make(url, lambda: back_up_by_command(url, dump), lambda: restore_dump(dump, empty))

    def by_base_backup(self, server: PostgresServer) -> None:
        """A PostgreSQL by pg_basebackup, which is what continuous archiving begins with."""
        copied = CopiedServer()
        try:
            with _migrated(server.url) as url:
                self._make(url, lambda: copied.copy(server), lambda: copied.start_for(url))
        finally:
            copied.__exit__()

    def _make(self, url: str, back_up: Callable[[], None], restored: Callable[[], str]) -> None:
        with self.used(url) as record, Writers(record) as writers:
            before = writers.wait_for(math.ceil(self.writes / _CLIENTS))
            back_up()
            writers.wait_for(max(before) + 1)  # nobody had to stop for it
        self.findings += asyncio.run(look_at_copy(restored(), before, writers.written))
        self.made += 1


def back_up_by_command(url: str, target: Path) -> None:
    """`recollect backup`, as an operator runs it."""
    path = f"{folder_of_tools()}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "recollect", "backup", str(target), "--url", url]
    subprocess.run(command, env=os.environ | {"PATH": path}, check=True, capture_output=True)


def restore_dump(dump: Path, url: str) -> str:
    """Bring a dump back into an empty database."""
    run_tool("pg_restore", url, "--exit-on-error", str(dump))
    return url


class CopiedServer(PostgresServer):
    """A PostgreSQL that starts from a base backup of another, taken while that is written to."""

    def copy(self, server: PostgresServer) -> None:
        """Take the base backup."""
        self._folder.chmod(0o777)  # the copy belongs to whoever runs the server
        place = ("--host", "127.0.0.1", "--port", str(server.port), "--username", "postgres")
        self._run("pg_basebackup", *place, "--pgdata", str(self._folder / "data"), "--checkpoint", "fast")

    def start_for(self, url: str) -> str:
        """Start it; where the copy of a database is then."""
        self.start()
        return f"{self.url.rpartition('/')[0]}/{url.rpartition('/')[2]}"


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """An empty database on a server, for a while; its URL."""
    name = f"backup_{os.getpid()}_{next(_numbers)}"
    sql(server, f"CREATE DATABASE {name}")
    try:
        yield server.rpartition("/")[0] + f"/{name}"
    finally:
        sql(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextmanager
def _migrated(server: str) -> Iterator[str]:
    with new_database(server) as url:
        asyncio.run(migrate(url))
        yield url
