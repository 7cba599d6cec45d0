"""The pool of reading connections: reads that take long leave room for quick ones."""

import sqlite3
import threading
from functools import partial

import pytest

from recollect.sql.sqlite.readers import Readers

SIZE, LONG = 2, 3


@pytest.fixture
def readers() -> Readers:
    return Readers(partial(sqlite3.connect, ":memory:", check_same_thread=False), SIZE, LONG)


def taken(readers: Readers) -> list[sqlite3.Connection]:
    """All that can be had at once."""
    return list(iter(readers.take_nowait, None))


def test_quick_reads_have_room_beside_long_ones(readers: Readers) -> None:
    for _ in range(LONG):
        (connection := readers.take_nowait()) and readers.lend(connection)
    assert len(taken(readers)) == SIZE


def test_a_read_that_cannot_be_lent_a_place_keeps_its_own(readers: Readers) -> None:
    for _ in range(LONG):
        readers.take_long()
    for connection in taken(readers):
        readers.lend(connection)
    assert readers.take_nowait() is None


def test_a_long_read_waits_for_another_and_takes_nothing_from_quick_ones(readers: Readers) -> None:
    long = [readers.take_long() for _ in range(LONG)]
    got: list[sqlite3.Connection] = []
    waiting = threading.Thread(target=lambda: got.append(readers.take_long()))
    waiting.start()
    quick = taken(readers)
    assert (len(quick), got) == (SIZE, [])
    readers.give_back(quick[0])
    readers.give_back(long[0])
    waiting.join(60)
    assert len(got) == 1


def test_no_more_are_kept_open_than_quick_reads_need(readers: Readers) -> None:
    lent = [readers.take_long() for _ in range(LONG)] + taken(readers)
    for connection in lent:
        readers.give_back(connection)
    open_ones = [each for each in lent if _is_open(each)]
    assert len(open_ones) == SIZE
    readers.empty()
    assert not readers.is_used


def test_pausing_waits_for_long_reads(readers: Readers) -> None:
    connection = readers.take_long()
    pausing = threading.Thread(target=readers.pause)
    pausing.start()
    assert readers.is_used
    readers.give_back(connection)
    pausing.join(60)
    assert not pausing.is_alive()
    assert readers.take_nowait() is None
    readers.resume()
    assert readers.take_nowait() is not None


def test_a_pool_without_long_reads_shares_all_it_has() -> None:
    readers = Readers(partial(sqlite3.connect, ":memory:"), 1)
    connection = readers.take_long()
    readers.lend(connection)
    assert readers.take_nowait() is None


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True
