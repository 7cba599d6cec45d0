"""The tools of the campaigns: a disk that is full, and a clock that jumps."""

import os
import subprocess
import sys

import pytest

from ..clock import JumpingClock
from ..disk import fill, make_room, small_disk

_TELL = """
import time
for _ in range(3):
    print(int(time.time()), int(time.monotonic()), flush=True)
    input()
"""


def test_a_small_disk_is_full_until_there_is_room_again() -> None:
    try:
        mounted = small_disk(1 << 20)
        with mounted as disk:
            fill(disk)
            with pytest.raises(OSError, match="No space left"):
                (disk / "file").write_bytes(bytes(10))
            make_room(disk)
            assert (disk / "file").write_bytes(bytes(10)) == 10
    except PermissionError as error:
        pytest.skip(str(error))
    assert not disk.exists()


def test_a_clock_jumps_in_a_process_that_runs_and_waits_go_on() -> None:
    day = 86_400
    with JumpingClock() as clock:
        environment = {**os.environ, **clock.environment()}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        told = []
        with subprocess.Popen([sys.executable, "-c", _TELL], env=environment, text=True, **pipes) as child:  # type: ignore[call-overload]
            for jump in (3 * day, -5 * day, 2 * day):
                told.append([int(number) for number in child.stdout.readline().split()])
                clock.jump(jump)
                print(file=child.stdin, flush=True)
        assert clock.wrong_by == 0
    (first, begun), (ahead, _), (behind, ended) = told
    assert abs(ahead - first - 3 * day) < day
    assert abs(behind - first + 2 * day) < day
    assert ended - begun < day
