"""The arrays of the encoder in a file of their own, which is mapped to memory.

The package has its weights compressed. Unpacked once to the user's cache folder, they are there at once, and
all processes share their memory. The name of the file says what it was made of. It is written completely or
not at all. A file that cannot be trusted is made again. Where none can be written, the arrays stay in memory.
"""

import hashlib
import json
import logging
import mmap
import os
import stat
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from .....private_files import replace_privately
from .weights import read_arrays, source_files

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

_log = logging.getLogger("recollect.memory")
_FORMAT = 1  # count up when arrays or their layout change
_MAGIC = b"recollect encoder\n"
_HEADER_SIZE = 4  # bytes of the number that follows the magic words
_ALIGNMENT = 4096
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class _UntrustedFileError(Exception):
    """The file has another size, form or owner than ours have."""


def load_arrays() -> Arrays:
    """The arrays by name, from the file if there is one. Else it is made, if its folder can be written."""
    path = cache_path()
    if path is None:
        return read_arrays()
    try:
        return open_arrays(path)
    except FileNotFoundError:
        pass
    except (OSError, _UntrustedFileError) as error:
        _log.warning("cached encoder cannot be used, making it again: %s", type(error).__name__)
    arrays = read_arrays()
    try:
        write_arrays(path, arrays)
        return open_arrays(path)
    except (OSError, _UntrustedFileError) as error:
        _log.warning("encoder cannot be cached, so it stays in memory: %s", type(error).__name__)
        return arrays


def cache_path() -> Path | None:
    """The file for the installed weights: `XDG_CACHE_HOME` or `~/.cache`, and a digest of the contents.

    `None` if the user has no home directory, as in a container that runs with an unknown user id.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if base.startswith("~"):
        return None
    return Path(base) / "recollect" / f"encoder-{_fingerprint()}.bin"


def _fingerprint() -> str:
    """A digest of the format and the source files, by the checksums that the archive has of its members."""
    weights, vocabulary = source_files()
    with zipfile.ZipFile(weights) as archive:
        members = [(each.filename, each.CRC) for each in archive.infolist()]
    described = (_FORMAT, members, zlib.crc32(vocabulary.read_bytes()))
    return hashlib.sha256(repr(described).encode()).hexdigest()[:16]


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a file that only its owner can write."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    described, place = {}, 0
    for name, array in arrays.items():
        described[name] = [array.dtype.str, list(array.shape), place]
        place += array.nbytes + -array.nbytes % _ALIGNMENT
    header = json.dumps({"size": place, "arrays": described}).encode()
    with replace_privately(path) as temporary, temporary.open("wb") as file:
        file.write(_MAGIC + len(header).to_bytes(_HEADER_SIZE, "little") + header)
        file.write(bytes(-file.tell() % _ALIGNMENT))
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).data)
            file.write(bytes(-array.nbytes % _ALIGNMENT))
        file.write(zlib.crc32(header).to_bytes(4, "little"))


def open_arrays(path: Path) -> Arrays:
    """The arrays of a file, mapped to memory and read when they are used."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        _check_owner(os.fstat(descriptor))
        mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file
        raise _UntrustedFileError from error
    finally:
        os.close(descriptor)
    header, first = _read_header(mapped)
    return {
        name: np.frombuffer(mapped, dtype, int(np.prod(shape, dtype=np.int64)), first + place).reshape(shape)
        for name, (dtype, shape, place) in header["arrays"].items()
    }


def _check_owner(status: os.stat_result) -> None:
    is_ours = not hasattr(os, "getuid") or status.st_uid in (0, os.getuid())
    if not stat.S_ISREG(status.st_mode) or not is_ours or status.st_mode & _OTHERS_MAY_WRITE:
        raise _UntrustedFileError


def _read_header(mapped: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The header of a file, and the place of its first array."""
    start = len(_MAGIC) + _HEADER_SIZE
    if mapped[: len(_MAGIC)] != _MAGIC:
        raise _UntrustedFileError
    text = mapped[start : start + int.from_bytes(mapped[len(_MAGIC) : start], "little")]
    # The checksum is the end of the file, so a file that was cut off does not have it.
    if zlib.crc32(text) != int.from_bytes(mapped[-4:], "little"):
        raise _UntrustedFileError
    header: dict[str, Any] = json.loads(text)
    first = start + len(text)
    first += -first % _ALIGNMENT
    if len(mapped) != first + header["size"] + 4:
        raise _UntrustedFileError
    return header, first
