"""A disk that is full before long: a file system of a few megabytes, in memory."""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POSTGRES_THERE = {"max_wal_size": "64MB"}
"""Settings of a PostgreSQL whose data are on a small disk."""
_BALLAST = "ballast"
_STEPS = (1 << 26, 1 << 20, 1 << 16, 1 << 12)  # ever smaller, down to a page, so that not a byte is left


@contextmanager
def small_disk(size: int) -> Iterator[Path]:
    """A folder on a disk of so many bytes, which is gone afterwards; anybody may write there.

    Mounting takes the rights of root: who has them not gets a `PermissionError`.
    """
    folder = Path(tempfile.mkdtemp(prefix="recollect-disk-"))
    try:
        _mount(folder, size)
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)  # whoever hangs on to it, may
    finally:
        folder.rmdir()


def fill(disk: Path, leaving: int = 0) -> None:
    """Take what room there is, but for so many bytes; never of a disk that is not a small one."""
    if not disk.is_mount():
        raise RuntimeError(f"nothing is mounted at {disk} any more")
    with (disk / _BALLAST).open("ab", buffering=0) as file:
        for step in _STEPS:
            _take_until_full(file.fileno(), step)
        file.truncate(max(os.fstat(file.fileno()).st_size - leaving, 0))


def make_room(disk: Path) -> None:
    """Give back what `fill` took."""
    (disk / _BALLAST).unlink(missing_ok=True)


def _mount(folder: Path, size: int) -> None:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(f"a small disk cannot be mounted here: {done.stderr.strip()}")


def _take_until_full(file: int, step: int) -> None:
    """Without writing anything, which is slower than those to whom the disk is to be full."""
    while True:
        try:
            os.posix_fallocate(file, os.fstat(file).st_size, step)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return
