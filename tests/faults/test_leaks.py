"""What is held on to is seen, and what was let go is not."""

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.redis import RedisServer

from .leaks import (
    Held,
    deadlocks_in,
    held,
    left_behind,
    left_in_postgres,
    left_in_redis,
    left_in_sqlite,
    more_than,
)


def test_a_file_a_socket_and_a_thread_are_seen_until_they_are_let_go(tmp_path: Path) -> None:
    before = held()
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait, name="somebody")
    with (tmp_path / "file").open("w"), socket.socket():
        thread.start()
        found = more_than(before, held())
        waiting.set()
        thread.join()
    assert sorted(found) == sorted(
        ["a thread somebody", f"1 times open: {tmp_path}/file", "1 times open: a socket"]
    )
    assert more_than(before, held()) == []


def test_of_threads_that_stay_there_may_be_one_of_each_name() -> None:
    def holding(*threads: str) -> Held:
        return Held(Counter(threads), 0, Counter())

    one = holding("recollect-reader_0", "asyncio_0", "asyncio_1")
    assert more_than(holding(), one) == []
    assert more_than(one, one) == []
    assert more_than(holding(), holding("asyncio_0", "asyncio_0")) == ["a thread asyncio_0"]
    assert more_than(one, holding(*one.threads, "recollect-reader_0")) == ["a thread recollect-reader_0"]


def test_a_task_is_seen_until_it_ends() -> None:
    async def work() -> tuple[list[str], list[str]]:
        before = held()
        task = asyncio.create_task(asyncio.sleep(60))
        found = await left_behind(before, patience=0)
        task.cancel()
        return found, await left_behind(before)

    assert asyncio.run(work()) == (["1 tasks"], [])


def test_another_process_is_looked_at_by_its_id(tmp_path: Path) -> None:
    work = "import sys; file = open(sys.argv[1], 'w'); print('ready', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", work, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = held(process.pid)
        process.communicate()
    assert found.open[str(tmp_path / "file")] == 1
    assert found.threads.total() == 1
    assert os.getpid() != process.pid


def test_a_connection_with_a_transaction_is_seen_in_postgresql(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT 1 FROM pg_class LIMIT 1")
        found = left_in_postgres(postgres_url, patience=0)
    assert {words.partition(" ")[2] for words in found} >= {
        "connections in PostgreSQL",
        "transactions in PostgreSQL",
        "locks in PostgreSQL",
    }


def test_two_who_wait_for_each_other_are_told_of_after_the_server_was_killed() -> None:
    with PostgresServer(settings={"deadlock_timeout": "50ms"}) as server:
        assert deadlocks_in(server.log) == []
        with psycopg.connect(server.url) as one, psycopg.connect(server.url) as other:
            one.execute("SELECT pg_advisory_xact_lock(1)")
            other.execute("SELECT pg_advisory_xact_lock(2)")
            with ThreadPoolExecutor(1) as thread:
                waiting = thread.submit(_takes, one, 2)
                assert _takes(other, 1) + waiting.result() == 1
        server.kill()
        server.start()
        assert deadlocks_in(server.log) == ["1 deadlocks in PostgreSQL"]


def _takes(connection: psycopg.Connection, lock: int) -> bool:
    """Whether a lock is got in the end."""
    try:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [lock])
    except psycopg.errors.DeadlockDetected:
        connection.rollback()  # so that the other goes on
        return False
    return True


def test_a_connection_is_seen_in_redis_until_it_is_closed() -> None:
    with RedisServer() as server:
        with socket.create_connection(("127.0.0.1", server.port)):
            assert left_in_redis(server.command, patience=1) == ["1 connections in Redis"]
        assert left_in_redis(server.command) == []


def test_a_lock_on_a_file_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert left_in_sqlite(path) != []
    holder.close()
    assert left_in_sqlite(path) == []
