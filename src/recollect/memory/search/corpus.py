"""A corpus: the documents of one scope in memory, indexed so that a search takes a few milliseconds.

A corpus holds arrays and no texts: columns by document, columns and vectors by passage, and postings. It is
not thread-safe. Its owner serializes access.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress, count, islice, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .background import Background
from .documents import Document, Flags, Floats, Numbers, Vector, substance
from .index import Column, Layout, lay_out
from .misspellings import LONGEST, known_edits
from .passage_vectors import PassageVectors, unit_of
from .passages import split
from .postings import Found, Postings, sum_by_row
from .records import (
    NO_TIME,
    NO_ZONE,
    ROLE_NUMBERS,
    Batch,
    Place,
    Record,
    decode,
    hashes_of,
    make_record,
    prefix_term,
    time_from_numbers,
)

T = TypeVar("T")
Key = str | tuple[str, str]
"""The id of a document: of an entry, or of a conversation and a message."""

_COLUMNS: Mapping[str, type] = {
    "session": np.int32,
    "has_session": np.bool_,
    "position": np.int64,
    "speaker": np.int32,
    "kind": np.int32,
    "micros": np.int64,
    "offset": np.int16,
    "length": np.int32,
    "question": np.float32,
    "names": np.float32,
    "time": np.bool_,
    "role": np.uint8,
    "statement": np.float32,
    "preference": np.float32,
    "is_instruction": np.bool_,
    "addressed": np.uint32,
    "first_passage": np.int64,
}
_PASSAGE_COLUMNS: Mapping[str, type] = {
    "row": np.int32,
    "start": np.int32,
    "end": np.int32,
    "length": np.int32,
    "is_code": np.bool_,
}
_ROLES = {number: role for role, number in ROLE_NUMBERS.items()}
_TRAITS = ("role", "statement", "preference", "is_instruction", "addressed")
_DAY = 86_400 * 10**6  # microseconds
_MINUTE = 60 * 10**6
NOBODY = -1
_IN_A_CHUNK = 1000  # documents that are analysed before they are indexed
_FEW = 1000  # documents whose rows are noted at once
_BYTES_OF_KEY = 200  # of the ids of a document, about


class Corpus:
    """The searchable documents of one scope. Documents can be added and removed.

    Vectors are compared by cosine similarity. A vector that does not fit (other dimensions, not finite, zero)
    is ignored, and its document is found by its text only.
    """

    def __init__(self, documents: Iterable[Document] = (), *, dimensions: int | None = None) -> None:
        self.keys: list[Key] = []
        """The id of the document of each row."""
        self.postings = Postings()
        self.vectors = PassageVectors(dimensions)
        self._rows: dict[Key, int] | None = {}
        self._sessions: dict[str, int] = {}
        self._kinds: dict[str, int] = {}
        self._names: list[str] = []  # of sessions, speakers and kinds, by their numbers
        self._speakers: dict[str, int] = {}
        self._columns = {name: Column(kind) for name, kind in _COLUMNS.items()}
        self._of_passages = {name: Column(kind) for name, kind in _PASSAGE_COLUMNS.items()}
        self._layout: Layout | None = None
        self._derived: dict[str, Any] = {}
        self._texts: dict[Key, str] = {}
        self.background: Background | None = None
        """The collection, if the documents are candidates that were chosen from it."""
        self.add(documents)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def collection_size(self) -> int:
        """The number of documents of the collection, of which these may be a part."""
        return len(self) if self.background is None else max(len(self), self.background.documents)

    @property
    def usual(self) -> "Corpus":
        """The documents that show what is usual in the collection: all of them, or a sample."""
        return self if self.background is None else self.background.sample

    def __contains__(self, key: object) -> bool:
        return key in self._row_of

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents with their texts. An id that is in use is a `ValueError`; those before it stay."""
        given = iter(documents)
        while chunk := list(islice(given, _IN_A_CHUNK)):
            new: dict[str, Document] = {}
            for document in chunk:
                if document.id in new or document.id in self._row_of:
                    break
                new[document.id] = document
            self._texts |= {key: document.text for key, document in new.items()}
            self.append(
                decode([self._record_of(each) for each in new.values()]),
                list(new),
                [each.session for each in new.values()],
                [each.kind for each in new.values()],
            )
            if len(new) < len(chunk):
                raise ValueError("a document with this id is in the corpus already")

    def _record_of(self, document: Document) -> Record:
        """The record of a document. Its vector counts for each of its passages."""
        role = document.role or (document.speaker if document.speaker in ROLE_NUMBERS else None)
        place = Place(document.speaker, document.position, document.time, role)
        vector, passages = unit_of(document.vector), split(document.text)
        if vector is not None and self.dimensions is None:
            self.vectors = PassageVectors(len(vector), self.passage_count)
        if vector is None or len(vector) != self.dimensions:
            return make_record(document.text, place, None, passages)
        return make_record(document.text, place, np.tile(vector, (len(passages), 1)), passages)

    def append(
        self,
        batch: Batch,
        keys: Sequence[Key],
        sessions: Sequence[str | None],
        kinds: Sequence[str] | None = None,
    ) -> None:
        """Add decoded records, whose ids must be new. `kinds` are turns unless they are given."""
        if not keys:
            return
        first_row, first_passage, sizes = len(self), self.passage_count, batch.passage_counts
        passages, of_passage = batch.passages, np.repeat(batch.has_vectors, sizes)
        self._add_passages(batch, np.repeat(np.arange(first_row, first_row + len(keys)), sizes))
        firsts = first_passage + np.cumsum(sizes) - sizes
        values = {
            "session": self._session_numbers(sessions),
            "has_session": [each is not None for each in sessions],
            "position": batch.heads["position"],
            "speaker": self._speaker_numbers(batch.speakers),
            "kind": [self._number(self._kinds, each) for each in kinds or repeat("turn", len(keys))],
            "micros": batch.heads["micros"],
            "offset": batch.heads["offset"],
            "length": np.add.reduceat(passages["length"], firsts - first_passage),
            "question": batch.heads["question"],
            "names": batch.heads["names"],
            "time": batch.heads["names_time"] > 0,
            **{name: batch.heads[name] for name in _TRAITS},
            "first_passage": firsts,
        }
        for name, column in self._columns.items():
            column.extend(values[name], len(keys))
        dimensions = int(batch.heads["dimensions"].max(initial=0))
        self.vectors.add(passages["scale"], of_passage, batch.vectors, dimensions)
        self._changed()
        if self._rows is not None and len(keys) < _FEW:
            self._rows.update(zip(keys, count(first_row)))
        else:
            self._rows = None
        self.keys += keys

    def _add_passages(self, batch: Batch, rows: Numbers) -> None:
        passages = batch.passages
        self.postings.add(batch.terms, batch.counts, passages["postings"].astype(np.int64))
        for name, column in self._of_passages.items():
            column.extend(rows if name == "row" else passages[name], len(rows))

    def remove(self, keys: Collection[Key]) -> int:
        """Remove documents and return how many were removed. Unknown ids are ignored."""
        gone = {self._row_of[each] for each in keys if each in self._row_of}
        if gone:
            stays = np.ones(len(self), np.bool_)
            stays[list(gone)] = False
            self._keep(stays)
        return len(gone)

    # --- documents ---

    def document(self, row: int) -> Document:
        """The document of a row, without its text and vector."""
        key, speaker = self.keys[row], int(self.column("speaker")[row])
        return Document(
            self.id_of(row),
            self._texts.get(key, ""),
            None if speaker == NOBODY else self._names[speaker],
            self.session_of(row),
            int(self.column("position")[row]),
            time_from_numbers(int(self.column("micros")[row]), int(self.column("offset")[row])),
            kind=self._names[int(self.column("kind")[row])],
            role=_ROLES.get(int(self.column("role")[row])),
        )

    def session_of(self, row: int) -> str | None:
        """The session of the document of a row, if it has one."""
        return self._names[int(self.column("session")[row])] if self.column("has_session")[row] else None

    def id_of(self, row: int) -> str:
        """The id of the document of a row as one text."""
        key = self.keys[row]
        return key if isinstance(key, str) else json.dumps(key)

    def rows_with_ids(self, ids: Collection[str]) -> Flags:
        """Whether the document of each row has one of these ids, as `id_of` gives them."""
        return np.fromiter((self.id_of(row) in ids for row in range(len(self))), np.bool_, len(self))

    def rows_where(self, name: str, values: Collection[str]) -> Flags:
        """Whether each row has one of these values as its `kind`, `role`, `speaker` or `session`."""
        numbers = self._numbers_of(name)
        is_wanted = np.zeros(max(len(self._names), *ROLE_NUMBERS.values()) + 2, np.bool_)
        is_wanted[[numbers[value] for value in values if value in numbers]] = True
        found: Flags = is_wanted[self.column(name)]  # nobody, -1, is never wanted
        return found

    def _numbers_of(self, name: str) -> Mapping[str, int]:
        known = {"kind": self._kinds, "speaker": self._speakers, "session": self._sessions}
        return ROLE_NUMBERS if name == "role" else known[name]

    def text_of(self, row: int) -> str | None:
        """The text of a document that was added with it; `None` for one that was added as a record."""
        return self._texts.get(self.keys[row])

    def column(self, name: str) -> NDArray[Any]:
        """A column with a value for each row: `length`, `speaker`, `day`, …"""
        if name in self._columns:
            return self._columns[name].values
        return self.derived(name, partial(self._derive, name))

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """What `make` makes of the columns. It is made once, until documents are added or removed."""
        if name not in self._derived:
            self._derived[name] = make()
        found: T = self._derived[name]
        return found

    def _derive(self, name: str) -> NDArray[Any]:
        """A column that is computed from others."""
        micros, has_time = self.column("micros"), self.column("offset") != NO_TIME
        if name == "day":  # of the calendar, from 1 on; 0 if it is not known
            return np.where(has_time, micros // _DAY + 1, 0)
        if name == "seconds":  # since the start of the calendar in local time; 0 if the time is not known
            return np.where(has_time, micros // 10**6 + 86_400.0, 0.0)
        if name == "utc_micros":  # since the start of the calendar; a time without a zone counts as UTC
            offset = self.column("offset")
            return micros - np.where(offset < NO_ZONE, offset, 0) * np.int64(_MINUTE)
        if name == "substance":
            return substance(self.column("length"))
        if name == "passages":
            return np.diff(self.column("first_passage"), append=self.passage_count)
        if name == "has_vector":  # in all passages
            firsts, has = self.column("first_passage"), self.vectors.has_vector
            return np.logical_and.reduceat(has, firsts) if len(firsts) else np.zeros(0, np.bool_)
        raise KeyError(name)

    @property
    def speakers(self) -> Mapping[str, int]:
        """The speakers, each with its number in the column `speaker`."""
        return self._speakers

    @property
    def layout(self) -> Layout:
        """The sessions of the rows, and their neighbours."""
        if self._layout is None:
            self._layout = lay_out(self.column("session"), self.column("position"))
        return self._layout

    # --- passages ---

    @property
    def passage_count(self) -> int:
        """The number of passages of all documents."""
        return self.postings.passages

    def passage_column(self, name: str) -> NDArray[Any]:
        """A column with a value for each passage: `row`, `start`, `end`, `length`, `is_code`."""
        return self._of_passages[name].values

    def passages_of(self, row: int) -> range:
        """The numbers of the passages of a document."""
        firsts = self.column("first_passage")
        return range(int(firsts[row]), int(firsts[row + 1]) if row + 1 < len(firsts) else self.passage_count)

    def best_of_passages(self, values: Floats) -> Floats:
        """The highest value among the passages of each document."""
        best: Floats = np.maximum.reduceat(values, self.column("first_passage"))
        return best

    def mean_of_passages(self, values: Floats) -> Floats:
        """The mean of the values of the passages of each document."""
        mean: Floats = np.add.reduceat(values, self.column("first_passage")) / self.column("passages")
        return mean

    def postings_of(self, terms: Sequence[str]) -> list[Found]:
        """The passages that contain each of some terms, which must be different, and how often."""
        return self.postings.find(hashes_of(terms)) if terms else []

    def rows_of(self, terms: Sequence[str]) -> list[tuple[Numbers, NDArray[Any]]]:
        """The rows that contain each of some terms, which must be different, and how often."""
        row_of = self.passage_column("row")
        return [sum_by_row(found, row_of) for found in self.postings_of(terms)]

    def rows_with_all(self, terms: Iterable[str]) -> Numbers:
        """The rows that contain all of some terms."""
        found = [rows for rows, _ in self.rows_of(list(dict.fromkeys(terms)))]
        common = found[0] if found else np.zeros(0, np.int64)
        for rows in found[1:]:
            common = np.intersect1d(common, rows, assume_unique=True)
        return common

    def variants_of(self, term: str) -> list[str]:
        """The terms of documents that a misspelled or unfinished term may mean.

        These are the terms at one edit from it, or else the term for all words with its first letters.
        """
        if not term.isascii() or not term.isalnum() or len(term) > LONGEST:
            return []
        found = known_edits(term, self.postings.has)
        if found:
            return found
        prefix = prefix_term(term)
        return [prefix] if prefix and self.postings.has(hashes_of([prefix])).all() else []

    @property
    def dimensions(self) -> int | None:
        """The dimensions of the vectors, as given or those of the first vector; `None` without vectors."""
        return self.vectors.dimensions

    def similarities(self, vector: Vector | None) -> Floats | None:
        """The similarity of each passage to a vector, from -1 to 1; `None` if nothing can be compared."""
        return self.vectors.similarities(vector)

    @property
    def size(self) -> int:
        """The bytes that it takes, about."""
        columns = (*self._columns.values(), *self._of_passages.values())
        texts = sum(map(len, self._texts.values()))
        return (
            sum(column.size for column in columns)
            + self.postings.size
            + self.vectors.size
            + _BYTES_OF_KEY * len(self)
            + 2 * texts
        )

    # --- numbers ---

    @property
    def _row_of(self) -> dict[Key, int]:
        if self._rows is None:
            self._rows = dict(zip(self.keys, count()))
        return self._rows

    def _number(self, numbers: dict[str, int], name: str) -> int:
        if name not in numbers:
            numbers[name] = len(self._names)
            self._names.append(name)
        return numbers[name]

    def _session_numbers(self, sessions: Sequence[str | None]) -> list[int]:
        """The number of each session. A document without a session is a session of its own."""
        known = self._sessions
        numbers = [NOBODY if each is None else known.get(each, NOBODY) for each in sessions]
        for place, each in enumerate(sessions):
            if numbers[place] == NOBODY:
                numbers[place] = self._number({} if each is None else known, each or "")
        return numbers

    def _speaker_numbers(self, names: Sequence[str]) -> list[int]:
        numbers = {
            each: self._number(self._speakers, each) if each else NOBODY for each in dict.fromkeys(names)
        }
        return [numbers[each] for each in names]

    def _changed(self) -> None:
        self._layout = None
        self._derived.clear()

    def _keep(self, stays: Flags) -> None:
        of_passages = stays[self.passage_column("row")]
        self.postings.renumber(_new_numbers(of_passages))
        self.vectors.keep(of_passages)
        for column in self._of_passages.values():
            column.keep(of_passages)
        row = self._of_passages["row"]
        row.values[:] = _new_numbers(stays)[row.values]
        firsts = _new_numbers(of_passages)[self.column("first_passage")]
        self.column("first_passage")[:] = firsts
        for column in self._columns.values():
            column.keep(stays)
        for key in compress(self.keys, ~stays):
            self._texts.pop(key, None)
        self.keys = list(compress(self.keys, stays))
        self._rows = None
        present = set(self.column("speaker").tolist())
        self._speakers = {name: number for name, number in self._speakers.items() if number in present}
        self._changed()


def _new_numbers(stays: Flags) -> Numbers:
    """The new number of each place; -1 for those that do not stay."""
    return np.where(stays, np.cumsum(stays) - 1, -1)
