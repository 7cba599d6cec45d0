"""Tests of new ids."""

import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from recollect.ids import new_hex, new_id, uuid_text


def test_an_id_is_a_uuid_as_python_writes_it() -> None:
    for _ in range(1000):
        made = new_id()
        read = uuid.UUID(made)
        assert str(read) == made
        assert (read.version, read.variant) == (4, uuid.RFC_4122)


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
