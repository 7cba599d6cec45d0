"""Tests of new ids."""

import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from recollect.ids import new_hex, new_id, time_ordered_id, uuid7, uuid_text


def test_an_id_is_a_uuid_as_python_writes_it() -> None:
    for _ in range(1000):
        made = new_id()
        read = uuid.UUID(made)
        assert str(read) == made
        assert (read.version, read.variant) == (7, uuid.RFC_4122)


def test_an_id_begins_with_the_time() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(new_id()).int >> 80
    assert before <= made <= time.time_ns() // 1_000_000


def test_ids_sort_by_time_and_by_order_within_it() -> None:
    ids = [time_ordered_id(1_700_000_000_000_000 + number // 3) for number in range(9000)]
    assert ids == sorted(set(ids))
    assert {uuid.UUID(made).version for made in ids} == {7}
    assert {uuid.UUID(made).variant for made in ids} == {uuid.RFC_4122}


def test_the_first_id_of_a_time_sorts_before_all_others_of_it() -> None:
    assert uuid7(1_700_000_000_000_999, 0) < time_ordered_id(1_700_000_000_000_999)
    assert uuid.UUID(uuid7(0, 0)).version == 7


def test_bytes_stay_in_the_text_apart_from_version_and_variant() -> None:
    assert uuid_text(bytes(16), "8") == "00000000-0000-8000-8000-000000000000"
    assert uuid_text(b"\xff" * 16, "4") == "ffffffff-ffff-4fff-bfff-ffffffffffff"
    assert uuid_text(bytes(range(16)), "4") == str(uuid.UUID(bytes=bytes(range(16)), version=4))


def test_no_id_is_given_out_twice_by_threads() -> None:
    start = threading.Barrier(4)

    def make() -> list[str]:
        start.wait()
        return [new_hex() for _ in range(5000)]

    with ThreadPoolExecutor(4) as pool:
        made = [each for part in pool.map(lambda _: make(), range(4)) for each in part]
    assert len(set(made)) == len(made)


def test_a_forked_child_has_ids_of_its_own() -> None:
    new_hex()  # the pool is filled
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_hex().encode())
        os._exit(0)
    os.waitpid(child, 0)
    of_child = os.read(reading, 100).decode()
    assert len(of_child) == 32
    assert of_child not in {new_hex() for _ in range(1000)}
