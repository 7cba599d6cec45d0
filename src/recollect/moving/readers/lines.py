"""Recollect's own line format: what `recollect export` writes, and what anyone can write."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ...errors import ImportFormatError
from ...memory.rights.exports import FORMAT
from ..kinds import ReadOptions
from ..records import STORE_ITEMS, Read, Record, Skipped
from ..sources import NOT_JSON, Value, read_lines, read_texts

KINDS = (
    *("memories", "conversations", "messages", "runs", "entries"),
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
        yield from record_of(value, is_first=is_first)
        is_first = False


def record_of(value: Value | Skipped, *, is_first: bool) -> Read:
    """The record of a line, or those of a whole export. A wrong first line raises `ImportFormatError`."""
    if not isinstance(value, Skipped):
        yield from _record(value, is_first)
    elif is_first and value.reason == NOT_JSON:
        raise ImportFormatError(f"{value.where}: not a line of JSON, so this is not a JSON Lines file")
    else:
        yield value


def _record(value: Value, is_first: bool) -> Read:
    where, line = value.where, value.data
    if not isinstance(line, Mapping):
        if is_first:
            raise ImportFormatError(f"{where}: not an object, so this is not a file in the line format")
        yield Skipped(where, "it is not an object")
    elif "format" in line and "kind" not in line:
        _check_format(where, line["format"])
        yield from _records_in_document(where, line)
    elif not isinstance(line.get("kind"), str) or "data" not in line:
        if is_first:
            raise ImportFormatError(f"{where}: no kind and data, so this is not a file in the line format")
        yield Skipped(where, "it has no kind and data")
    else:
        yield _record_of_kind(line["kind"], line["data"], where, value.size)


def _records_in_document(where: str, document: Mapping[str, Any]) -> Read:
    """The records of an export that is one JSON object. The first line of JSON Lines has none."""
    for kind in (*KINDS, *_FOR_READING):
        listed = document.get(kind) or []
        if not isinstance(listed, list):
            yield Skipped(where, f"{kind} must be a list")
            continue
        for place, data in enumerate(listed):
            yield _record_of_kind(kind, data, f"{where}, {kind}[{place}]", 0)


def _record_of_kind(kind: str, data: Any, where: str, size: int) -> Record | Skipped:
    if kind in _FOR_READING:
        return Skipped(where, f"{kind} are exported for reading only", is_lost=False)
    if kind not in KINDS:
        return Skipped(where, f"unknown kind of record: use one of {', '.join(KINDS)}")
    return Record(kind, data, where, size)


def _check_format(where: str, given: Any) -> None:
    """Check the format that the first line of a file may name."""
    if given != FORMAT:
        raise ImportFormatError(f"{where}: unknown format; this version of recollect reads {FORMAT}")


def open_source(source: str, _: ReadOptions) -> Read:
    """Read a file, or standard input for `-`."""
    if source == "-":
        return read_file("standard input", sys.stdin.buffer)
    return read(Path(source))
