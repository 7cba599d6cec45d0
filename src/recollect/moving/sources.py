"""Opens files and zip archives, and splits them into JSON values without reading them as a whole.

An archive is never unpacked to disk. Members with suspicious paths or sizes are reported and not read.
"""

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar, cast

import msgspec

from ..errors import ImportFormatError
from .records import Skipped

T = TypeVar("T")

LARGEST_VALUE = 64_000_000
"""The most bytes of one JSON value, such as a conversation."""
NOT_JSON = "it is not valid JSON"
_CHUNK = 1 << 16
_MOST_RATIO = 200  # text is compressed by less than this; a zip bomb by more
_SMALL = 10_000_000  # bytes that no ratio makes dangerous
_ZIP = b"PK"
_STRUCTURE = re.compile(rb'[\\"{}\[\]]')
_BLANK = b" \t\r\n,"


class Value:
    """A JSON value of a file, with its place for messages about it."""

    __slots__ = ("data", "size", "where")

    def __init__(self, where: str, data: Any, size: int) -> None:
        self.where = where
        self.data = data
        self.size = size  # bytes


def is_zip(path: Path) -> bool:
    """Whether a file is, or was meant as, a zip archive."""
    with path.open("rb") as file:
        return file.read(2) == _ZIP


def read_members(path: Path, pattern: str) -> Iterator[tuple[str, IO[bytes]] | Skipped]:
    """The files of an archive whose names match, each open for reading; a file that is no archive is itself.

    Raises `ImportFormatError` if the archive is incomplete, or has no such file.
    """
    if not is_zip(path):
        with path.open("rb") as file:
            yield path.name, _counted(file, path.stat().st_size)
        return
    with _open_zip(path) as archive:
        found = False
        for member in archive.infolist():
            if not re.fullmatch(pattern, PurePosixPath(member.filename).name):
                continue
            found = True
            reason = _refuse(member)
            if reason is not None:
                yield Skipped(member.filename, reason)
                continue
            with archive.open(member) as file:
                yield member.filename, _counted(file, member.file_size)
        if not found:
            raise ImportFormatError(f"{path} holds no file that matches {pattern}")


@contextmanager
def _open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except zipfile.BadZipFile as error:
        raise ImportFormatError(f"{path} is not a complete zip archive: get it again") from error


def _refuse(member: zipfile.ZipInfo) -> str | None:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        return "its path leaves the archive: it is not read"
    if member.flag_bits & 1:
        return "it is encrypted: it cannot be read"
    if member.file_size > _SMALL and member.file_size > _MOST_RATIO * max(1, member.compress_size):
        return f"it is compressed more than {_MOST_RATIO} times, as only a zip bomb is: it is not read"
    return None


# --- splitting ---


def read_lines(name: str, file: IO[bytes]) -> Iterator[Value | Skipped]:
    """The values of a file with one JSON value on each line."""
    for number, line in enumerate(_bounded_lines(file), 1):
        where = f"{name}, line {number}"
        if line is None:
            yield Skipped(where, f"it is longer than {LARGEST_VALUE:,} bytes")
        elif line.strip():
            yield from decode(where, line.strip())


def _bounded_lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """The lines of a file; `None` in place of one that is too long."""
    while line := file.readline(LARGEST_VALUE):
        if line.endswith(b"\n") or len(line) < LARGEST_VALUE:
            yield line.removeprefix(b"\xef\xbb\xbf")
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LARGEST_VALUE)
        yield None


def read_array(name: str, file: IO[bytes]) -> Iterator[Value | Skipped]:
    """The elements of the JSON array of a file, one at a time.

    An object with one array, such as `{"conversations": […]}`, is read too. Raises `ImportFormatError` if the
    file holds nothing of the kind. A file that ends early gives the elements before its end.
    """
    splitter = _Splitter()
    number = 0
    try:
        while chunk := file.read(_CHUNK):
            for element in splitter.feed(chunk):
                number += 1
                where = f"{name}, element {number}"
                if element is None:
                    yield Skipped(where, f"it is longer than {LARGEST_VALUE:,} bytes")
                else:
                    yield from decode(where, element)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        yield Skipped(name, f"the archive is damaged after {number} elements ({type(error).__name__})")
        return
    if not splitter.began:
        raise ImportFormatError(f"{name} is not JSON with a list of objects")
    if not splitter.ended:
        yield Skipped(name, f"the file ends early, after {number} complete elements")


class _Splitter:
    """Finds the end of each element of an array in a stream of bytes."""

    def __init__(self) -> None:
        self.began = False
        self.ended = False
        self._buffer = bytearray()
        self._scanned = 0  # bytes of the buffer
        self._depth = 0
        self._in_text = False
        self._escaped_at = -1
        self._too_long = False
        self._outer = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The elements that end in these bytes; `None` for one that is too long."""
        self._buffer += chunk
        if not self.began and not self._begin():
            return
        start = 0
        for found in _STRUCTURE.finditer(self._buffer, self._scanned):
            at = found.start()
            end = self._step(self._buffer[at], at)
            if end:
                element = bytes(self._buffer[start : at + 1]).strip(_BLANK)
                yield None if self._too_long else element
                start, self._too_long = at + 1, False
            if self.ended:
                break
        self._forget(start)

    def _begin(self) -> bool:
        """Find the start of the array. More than a little before it means that this is something else."""
        opening = self._buffer.find(b"[")
        before = (
            bytes(self._buffer[: opening if opening >= 0 else None]).removeprefix(b"\xef\xbb\xbf").strip()
        )
        if before and not re.fullmatch(
            rb'\{\s*(?:"[\w ]{0,60}"\s*:\s*(?:"[^"\\]{0,200}"|[\w.+-]+)\s*,\s*)*"?[\w ]{0,60}"?\s*:?\s*',
            before,
        ):
            raise ImportFormatError("the file is not JSON with a list of objects")
        if opening < 0:
            return False
        self.began = True
        self._outer = 1 if before else 0
        self._scanned = opening + 1
        del self._buffer[: self._scanned]
        self._scanned = 0
        return True

    def _step(self, byte: int, at: int) -> bool:
        """Follow one structural byte. Returns whether an element ends here."""
        if self._in_text:
            if at == self._escaped_at:
                return False
            if byte == 0x5C:  # a backslash
                self._escaped_at = at + 1
            elif byte == 0x22:
                self._in_text = False
            return False
        if byte == 0x22:
            self._in_text = True
        elif byte in b"{[":
            self._depth += 1
        elif byte in b"}]":
            self._depth -= 1
            self.ended = self._depth < 0
            return self._depth == 0
        return False

    def _forget(self, start: int) -> None:
        """Drop what was given out, and an element that became too long."""
        if len(self._buffer) - start > LARGEST_VALUE:
            self._too_long = True
        kept = len(self._buffer) if self._too_long else start
        del self._buffer[:kept]
        self._scanned = len(self._buffer)
        self._escaped_at -= kept


def decode(where: str, data: bytes) -> Iterator[Value | Skipped]:
    """A JSON value. Bytes in another encoding are replaced, which is reported."""
    try:
        yield Value(where, msgspec.json.decode(data), len(data))
        return
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    text, is_exact = _decode_text(data)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield Skipped(where, NOT_JSON)
        return
    if not is_exact:
        yield Skipped(where, "it has bytes that are not UTF-8: they are replaced")
    yield Value(where, value, len(data))


def _decode_text(data: bytes) -> tuple[str, bool]:
    try:
        return data.decode("utf-8"), True
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), False


@contextmanager
def as_utf8(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file as UTF-8: one in UTF-16 or UTF-32 with a mark at its start is converted while it is read."""
    import codecs

    start = file.read(4)
    encoding = next((name for mark, name in _MARKS if start.startswith(mark)), None)
    rest = _Prefixed(start, file)
    if encoding is None:
        yield cast(IO[bytes], rest)
        return
    yield cast(IO[bytes], codecs.EncodedFile(cast(Any, rest), "utf-8", encoding, errors="replace"))


_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


class _Prefixed:
    """A file after some bytes that were read already."""

    def __init__(self, start: bytes, file: IO[bytes]) -> None:
        self._start = start
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Read some bytes."""
        if not self._start:
            return self._file.read(size)
        start, self._start = self._start, b""
        if size < 0:
            return start + self._file.read()
        self._start = start[size:]
        return start[:size]

    def readline(self, size: int = -1) -> bytes:
        """Read a line, or the bytes of it that fit."""
        if not self._start:
            return self._file.readline(size)
        start, self._start = self._start, b""
        head, newline, tail = start.partition(b"\n")
        if newline:
            self._start = tail
            return head + newline
        return start + self._file.readline(size - len(start) if size > 0 else size)


# --- progress ---

_watch: ContextVar[Callable[[int, int], None] | None] = ContextVar("recollect_import_watch", default=None)


@contextmanager
def watching(reached: Callable[[int, int], None]) -> Iterator[None]:
    """Report how far files are read, in bytes of their size, while the block runs."""
    token = _watch.set(reached)
    try:
        yield
    finally:
        _watch.reset(token)


class _Counted:
    """A file that reports how far it was read."""

    def __init__(self, file: IO[bytes], size: int, reached: Callable[[int, int], None]) -> None:
        self._file = file
        self._size = size
        self._reached = reached
        self._done = 0

    def read(self, size: int = -1) -> bytes:
        """Read some bytes."""
        return self._count(self._file.read(size))

    def readline(self, size: int = -1) -> bytes:
        """Read a line, or the bytes of it that fit."""
        return self._count(self._file.readline(size))

    def _count(self, data: bytes) -> bytes:
        self._done += len(data)
        self._reached(self._done, self._size)
        return data


def _counted(file: IO[bytes], size: int) -> IO[bytes]:
    reached = _watch.get()
    return file if reached is None else cast(IO[bytes], _Counted(file, size, reached))


def read_texts(
    path: Path, pattern: str, read: Callable[[str, IO[bytes]], Iterator[T]]
) -> Iterator[T | Skipped]:
    """What `read` yields of a file in UTF-8, or of the members of an archive that match a pattern."""
    for member in read_members(path, pattern):
        if isinstance(member, Skipped):
            yield member
            continue
        name, file = member
        with as_utf8(file) as text:
            yield from read(name, text)


def read_arrays(path: Path, pattern: str) -> Iterator[Value | Skipped]:
    """The values of the JSON arrays in a file, or in the members of an archive that match a pattern."""
    return read_texts(path, pattern, read_array)
