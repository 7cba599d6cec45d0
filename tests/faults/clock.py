"""A clock for child processes that can jump: a small library of ours, and a file that says by how much."""

import atexit
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self

_SOURCE = Path(__file__).with_name("clock.c")


class JumpingClock:
    """What time it is to the processes started with `environment()`; time since a moment goes on as ever.

    The library is compiled here: where there is no C compiler, this is a `FileNotFoundError`.
    """

    def __init__(self) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise FileNotFoundError("a clock that jumps needs a C compiler: apt-get install gcc libc6-dev")
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-clock-"))
        self._folder.chmod(0o755)  # servers that run as somebody else read it too
        options = ["-shared", "-fPIC", "-O2", "-o", str(self._library), str(_SOURCE), "-ldl"]
        subprocess.run([compiler, *options], check=True)
        self._library.chmod(0o755)
        self._wrong_by = 0
        self._file.write_bytes(struct.pack("l", 0))
        self._file.chmod(0o644)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Let nobody be started by it any more."""
        shutil.rmtree(self._folder)

    @property
    def wrong_by(self) -> int:
        """By how many seconds it is fast."""
        return self._wrong_by

    def environment(self) -> dict[str, str]:
        """What the environment of a process needs, beside what is there."""
        return {"LD_PRELOAD": str(self._library), "RECOLLECT_CLOCK": str(self._file)}

    @contextmanager
    def started_meanwhile(self) -> Iterator[None]:
        """Have what this process starts meanwhile go by this clock."""
        ours = self.environment()
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value

    def jump(self, seconds: int) -> None:
        """Set the clock of all these processes forward, or back if less than 0, from where it is."""
        self._wrong_by += seconds
        file = os.open(self._file, os.O_WRONLY)
        try:
            os.pwrite(file, struct.pack("l", self._wrong_by), 0)
        finally:
            os.close(file)

    def is_that_of(self, process: int) -> bool:
        """Whether a process goes by it; one that has ended does not."""
        try:
            return str(self._library) in Path("/proc", str(process), "maps").read_text()
        except OSError:
            return False

    def set_right(self) -> None:
        """Let it be right again."""
        self.jump(-self._wrong_by)

    @property
    def _file(self) -> Path:
        return self._folder / "wrong_by"

    @property
    def _library(self) -> Path:
        return self._folder / "clock.so"


@cache
def shared_clock() -> JumpingClock:
    """One for as long as this process lives, as has what forks clients for it."""
    clock = JumpingClock()
    atexit.register(clock.close)
    return clock
