"""Search records: what the ranking needs of a text, computed once and stored in a compact form.

A record has four parts. The head holds the place of the text in its conversation, its traits and its
passages. `terms` holds the terms of each passage as 32-bit hashes, `counts` how often each occurs there.
`vectors` holds the vector of each passage with a byte for each dimension. A record holds no words.

Many records are decoded at once into arrays: the same parts of all records are joined, without a loop over
terms.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..texts.terms import characters, search_terms
from .documents import Numbers, Vectors
from .passages import Passage, split
from .traits import traits_of

VERSION = 1
"""The format of records, and how texts are cut and embedded. A change makes all records and vectors anew.

A store without an embedder makes only missing records: with a change, a step of the schema must remove them.
"""
_MARK = 0x52  # "R"
_HEAD = np.dtype(
    [
        ("mark", "u1"),
        ("version", "u1"),
        ("passages", "<u2"),
        ("dimensions", "<u4"),
        ("offset", "<i2"),
        ("checksum", "<u4"),
        ("micros", "<i8"),
        ("position", "<i8"),
        ("question", "<f4"),
        ("names", "<f4"),
        ("names_time", "u1"),
        ("role", "u1"),
        ("statement", "<f4"),
        ("preference", "<f4"),
        ("is_instruction", "u1"),
        ("addressed", "<u4"),
    ]
)
_PASSAGE = np.dtype(
    [
        ("start", "<u4"),
        ("end", "<u4"),
        ("length", "<u4"),
        ("postings", "<u4"),
        ("scale", "<f4"),
        ("is_code", "u1"),
    ]
)
_TERM = np.dtype("<u4")
ROLE_NUMBERS = {"user": 1, "assistant": 2, "tool": 3, "system": 4}
"""The number of each role in a record. 0 is no role."""
NO_TIME = 32767
"""In place of the offset of the zone in minutes, if a time is not known."""
NO_ZONE = 32766
"""The same, if the time is known and its zone is not."""
_MOST_COUNTED = 255
_LONG_WORD = 6
_PREFIX = 4
_PREFIX_MARK = "\0"  # no term contains it
_DAWN = datetime(1, 1, 1)  # noqa: DTZ001 - the start of the calendar, in no zone

Terms = NDArray[np.uint32]


class Record(NamedTuple):
    """A search record as it is stored."""

    head: bytes
    terms: bytes
    counts: bytes
    vectors: bytes = b""


@dataclass(frozen=True)
class Place:
    """Who said a text, where in its conversation, and when."""

    speaker: str | None = None
    position: int = 0
    time: datetime | None = None
    role: str | None = None
    """The role of the speaker; `user` for an entry, which is about the user."""


# --- terms ---


@lru_cache(maxsize=100_000)
def hash_of(term: str) -> int:
    """The number of a term in postings."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def hashes_of(wanted: Iterable[str]) -> Terms:
    """The numbers of terms."""
    return np.fromiter(map(hash_of, wanted), np.uint32)


def prefix_term(word: str) -> str | None:
    """The term for the first letters of a long word; `None` for short words and for what is no word."""
    return _PREFIX_MARK + word[:_PREFIX] if len(word) >= _LONG_WORD and word.isalpha() else None


# --- encoding ---


def make_record(
    text: str, place: Place, vectors: Vectors | None = None, passages: Sequence[Passage] | None = None
) -> Record:
    """The record of a text, with a vector for each of its passages, or without vectors."""
    parts = split(text) if passages is None else passages
    found = [_terms_of(text[part.start : part.end]) for part in parts]
    postings = _with_prefixes(counted for counted, _ in found)
    scales, quantised = _quantise(vectors, len(parts))
    packed = np.zeros(len(parts), _PASSAGE)
    packed["start"], packed["end"] = [each.start for each in parts], [each.end for each in parts]
    packed["length"], packed["postings"] = [length for _, length in found], list(map(len, postings))
    packed["scale"], packed["is_code"] = scales, [each.is_code for each in parts]
    hashed = hashes_of(term for counted in postings for term in counted).astype(_TERM).tobytes()
    counts = bytes(min(count, _MOST_COUNTED) for counted in postings for count in counted.values())
    body = packed.tobytes() + (place.speaker or "").encode("utf-8", "surrogatepass")
    dimensions = len(quantised) // max(1, len(parts))
    head = _head(text, place, len(parts), dimensions, (body, hashed, counts, quantised))
    return Record(head + body, hashed, counts, quantised)


def _terms_of(text: str) -> tuple[Counter[str], int]:
    """The terms of a passage with their numbers of occurrences, and the number of all."""
    found = Counter(search_terms(text))
    length = found.total()
    found.update({each: 1 for each in characters(text) if each not in found})
    return found, length


def _with_prefixes(found: Iterable[Counter[str]]) -> list[Counter[str]]:
    """The terms of each passage, with the prefixes of its long words, each once in a text."""
    result, known = [], set[str]()
    for counted in found:
        prefixes = {prefix for term in counted if (prefix := prefix_term(term))} - known
        known |= prefixes
        counted.update(dict.fromkeys(sorted(prefixes), 1))
        result.append(counted)
    return result


def _head(text: str, place: Place, passages: int, dimensions: int, rest: tuple[bytes, ...]) -> bytes:
    head = np.zeros(1, _HEAD)
    head["mark"], head["version"] = _MARK, VERSION
    head["passages"], head["dimensions"] = passages, dimensions
    head["micros"], head["offset"] = _time_to_numbers(place.time)
    head["position"] = min(place.position, 2**62)
    traits = traits_of(text, place.speaker)
    head["role"] = ROLE_NUMBERS.get(place.role or "", 0)
    head["question"], head["names"], head["names_time"] = traits.question, traits.names, traits.names_time
    head["statement"], head["preference"] = traits.statement, traits.preference
    head["is_instruction"] = traits.is_instruction
    head["addressed"] = hash_of(traits.addressed) if traits.addressed else 0
    head["checksum"] = _checksum(head.tobytes(), *rest)
    return head.tobytes()


def _checksum(*parts: bytes) -> int:
    value = 0
    for part in parts:
        value = zlib.crc32(part, value)
    return value


def _time_to_numbers(time: datetime | None) -> tuple[int, int]:
    """The microseconds since the start of the calendar in local time, and the offset of its zone."""
    if time is None:
        return 0, NO_TIME
    micros = (time.replace(tzinfo=None) - _DAWN) // timedelta(microseconds=1)
    offset = time.utcoffset()
    return micros, NO_ZONE if offset is None else offset // timedelta(minutes=1)


def time_from_numbers(micros: int, offset: int) -> datetime | None:
    """The time in a record; `None` if it is not known."""
    if offset == NO_TIME:
        return None
    time = _DAWN + timedelta(microseconds=micros)
    if offset == NO_ZONE:
        return time
    return time.replace(tzinfo=timezone(timedelta(minutes=offset)) if offset else UTC)


def _quantise(vectors: Vectors | None, passages: int) -> tuple[NDArray[np.float32], bytes]:
    """Unit vectors with a byte for each dimension, and what a step is worth in each vector."""
    if vectors is None or len(vectors) != passages:
        return np.zeros(passages, np.float32), b""
    given = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    unit = given / np.where(lengths > 0, lengths, 1.0)
    largest = np.abs(unit).max(axis=1, initial=0.0)
    steps = largest / 127
    whole = np.rint(unit / np.where(steps > 0, steps, 1.0)[:, None]).astype(np.int8)
    return steps.astype(np.float32), whole.tobytes()


# --- decoding ---


class CorruptRecordsError(ValueError):
    """Records that cannot be decoded, by their places in the list."""

    def __init__(self, places: Collection[int]) -> None:
        super().__init__("some search records are corrupt")
        self.places = frozenset(places)


class OutdatedRecordsError(CorruptRecordsError):
    """Records of another version, by their places in the list. They are sound, and are to be made anew."""


@dataclass
class Batch:
    """Decoded records as arrays: by document, by passage, and by posting."""

    heads: NDArray[Any]
    speakers: list[str]
    """The name of the speaker of each document; empty if it has none."""
    passages: NDArray[Any]
    terms: Terms
    counts: NDArray[np.uint8]
    vectors: bytes
    """The vectors of the documents that have some, one passage after the other."""
    has_vectors: NDArray[np.bool_]
    """Whether each document has vectors."""

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def passage_counts(self) -> Numbers:
        """The number of passages of each document."""
        counts: Numbers = self.heads["passages"].astype(np.int64)
        return counts


def decode(records: Sequence[Sequence[bytes]]) -> Batch:
    """Decode records at once. Raises `CorruptRecordsError` that names those that cannot be decoded."""
    return decode_parts(*zip(*records, strict=True)) if records else decode_parts((), (), (), ())


def decode_parts(
    heads: Sequence[bytes], terms_of: Sequence[bytes], counts_of: Sequence[bytes], vectors: Sequence[bytes]
) -> Batch:
    """Decode records at once, given as lists of their parts. Raises `CorruptRecordsError` like `decode`."""
    _check_types(heads, terms_of, counts_of, vectors)
    fixed = _fixed(heads)
    ends = (_HEAD.itemsize + fixed["passages"].astype(np.int64) * _PASSAGE.itemsize).tolist()
    joined = b"".join([head[_HEAD.itemsize : end] for head, end in zip(heads, ends, strict=True)])
    _check_passages(fixed, heads, ends, joined)
    _check_sizes(fixed, joined, terms_of, counts_of, vectors)
    return Batch(
        fixed,
        _speakers([head[end:] for head, end in zip(heads, ends, strict=True)]),
        np.frombuffer(joined, _PASSAGE),
        np.frombuffer(b"".join(terms_of), _TERM),
        np.frombuffer(b"".join(counts_of), np.uint8),
        b"".join(vectors),
        _sizes(vectors) > 0,
    )


def _check_types(*parts: Sequence[bytes]) -> None:
    """Check that all parts are bytes: a column of SQLite may hold anything."""
    if all(set(map(type, part)) <= {bytes} for part in parts):
        return
    strange = {place for part in parts for place, value in enumerate(part) if type(value) is not bytes}
    raise CorruptRecordsError(strange)


def check(record: Sequence[bytes]) -> None:
    """Check a record with its checksum. Raises `ValueError` if it is corrupt; another version is sound."""
    try:
        batch = decode([record])
    except OutdatedRecordsError:
        return
    head = batch.heads.copy()
    stored = int(head["checksum"][0])
    head["checksum"] = 0
    if _checksum(head.tobytes(), record[0][_HEAD.itemsize :], *record[1:]) != stored:
        raise CorruptRecordsError([0])


def _fixed(heads: Sequence[bytes]) -> NDArray[Any]:
    """The fixed parts of heads."""
    parts = [head[: _HEAD.itemsize] for head in heads]
    joined = b"".join(parts)
    if len(joined) != _HEAD.itemsize * len(heads):
        short = [place for place, part in enumerate(parts) if len(part) < _HEAD.itemsize]
        raise CorruptRecordsError(short)
    fixed = np.frombuffer(joined, _HEAD)
    wrong = (fixed["mark"] != _MARK) | (fixed["passages"] == 0)
    if wrong.any():
        raise CorruptRecordsError(np.flatnonzero(wrong).tolist())
    if (fixed["version"] != VERSION).any():
        raise OutdatedRecordsError(np.flatnonzero(fixed["version"] != VERSION).tolist())
    return fixed


def _check_passages(fixed: NDArray[Any], heads: Sequence[bytes], ends: Sequence[int], joined: bytes) -> None:
    """Check that the heads hold all passages that they count."""
    if len(joined) != int(fixed["passages"].sum()) * _PASSAGE.itemsize:
        cut = [place for place, (head, end) in enumerate(zip(heads, ends, strict=True)) if len(head) < end]
        raise CorruptRecordsError(cut)


def _check_sizes(
    fixed: NDArray[Any],
    joined: bytes,
    terms_of: Sequence[bytes],
    counts_of: Sequence[bytes],
    vectors: Sequence[bytes],
) -> None:
    """Check that the sizes of the parts fit together."""
    if not len(fixed):
        return
    counts = fixed["passages"].astype(np.int64)
    firsts = np.cumsum(counts) - counts
    named = np.add.reduceat(np.frombuffer(joined, _PASSAGE)["postings"].astype(np.int64), firsts)
    wrong = (named != _sizes(counts_of)) | (named * _TERM.itemsize != _sizes(terms_of))
    sizes = _sizes(vectors)
    wrong |= (sizes != counts * fixed["dimensions"]) & (sizes != 0)
    if wrong.any():
        raise CorruptRecordsError(np.flatnonzero(wrong).tolist())


def _sizes(parts: Sequence[bytes]) -> Numbers:
    return np.fromiter(map(len, parts), np.int64, len(parts))


def _speakers(stored: Sequence[bytes]) -> list[str]:
    names = {each: each.decode("utf-8", "replace") for each in set(stored)}
    return [names[each] for each in stored]
