"""Recollect's own line format: what `recollect export` writes, and what anyone can write."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ...errors import ImportFormatError
from ..kinds import ReadOptions
from ..records import STORE_ITEMS, Read, Record, Skipped
from ..sources import Value, read_lines, read_texts

FORMATS = ("recollect.user/1", "recollect.user/2")
"""The versions of the format that are read. A file may begin with a line that names one."""
KINDS = (
    *("memories", "conversations", "messages", "entries", "runs"),
    *("sessions", "items", "events", "summaries", STORE_ITEMS),
)
_FOR_READING = ("threads",)


def read(source: Path) -> Read:
    """Read a file with one record on each line, plain or in a zip archive."""
    return read_texts(source, r".*\.(jsonl|ndjson)", read_file)


def read_file(name: str, file: IO[bytes]) -> Read:
    """Read the lines of an open file."""
    yield from records_of(read_lines(name, file))


def records_of(values: Iterator[Value | Skipped]) -> Read:
    """The records in lines. A file without one raises `ImportFormatError`."""
    is_first = True
    for value in values:
        if isinstance(value, Skipped):
            if is_first and value.reason == "it is not valid JSON":
                raise ImportFormatError(
                    f"{value.where}: not a line of JSON, so this is not a JSON Lines file"
                )
            yield value
        else:
            yield from _record(value, is_first)
        is_first = False


def record_of(value: Value) -> Iterator[Record | Skipped]:
    """The record of a line that may be any line of a stream."""
    yield from _record(value, is_first=False)


def _record(value: Value, is_first: bool) -> Iterator[Record | Skipped]:
    where, line = value.where, value.data
    if not isinstance(line, Mapping):
        if is_first:
            raise ImportFormatError(f"{where}: not an object, so this is not a file in the line format")
        yield Skipped(where, "it is not an object")
    elif "format" in line and "kind" not in line:
        _check_format(where, line["format"])
    elif not isinstance(line.get("kind"), str) or "data" not in line:
        if is_first:
            raise ImportFormatError(f"{where}: no kind and data, so this is not a file in the line format")
        yield Skipped(where, "it has no kind and data")
    elif line["kind"] in _FOR_READING:
        yield Skipped(where, f"{line['kind']} are exported for reading only", is_lost=False)
    elif line["kind"] not in KINDS:
        yield Skipped(where, f"unknown kind of record: use one of {', '.join(KINDS)}")
    else:
        yield Record(line["kind"], line["data"], where, value.size)


def _check_format(where: str, given: Any) -> None:
    if given not in FORMATS:
        raise ImportFormatError(
            f"{where}: unknown format; this version of recollect reads {' and '.join(FORMATS)}"
        )


def open_source(source: str, _: ReadOptions) -> Read:
    """Read a file, or standard input for `-`."""
    if source == "-":
        return read_file("standard input", sys.stdin.buffer)
    return read(Path(source))
