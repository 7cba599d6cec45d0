"""A corpus: the documents of one scope in memory, indexed so that a search takes about a millisecond.

A corpus is not thread-safe. Its owner serializes access.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..texts.terms import characters, terms
from .documents import Document, Numbers, Vector, Vectors, name_share, names_time, question_share, substance
from .index import Column, Layout, Postings, lay_out

_COLUMNS: Mapping[str, type] = {
    "session": np.int64,
    "has_session": np.bool_,
    "position": np.int64,
    "speaker": np.int64,
    "day": np.int64,
    "seconds": np.float64,
    "length": np.float64,
    "question": np.float64,
    "names": np.float64,
    "time": np.float64,
    "substance": np.float64,
    "has_vector": np.bool_,
}
NOBODY = -1
NO_DAY = 0  # the calendar starts with 1


class Corpus:
    """The searchable documents of one scope. Documents can be added and removed.

    Vectors are compared by cosine similarity. A vector that does not fit (other dimensions, not finite, zero)
    is ignored, and its document is found by its text only.
    """

    def __init__(self, documents: Iterable[Document] = (), *, dimensions: int | None = None) -> None:
        self.documents: list[Document] = []
        """The documents by row, without their vectors."""
        self.postings = Postings()
        self._dimensions = dimensions
        self._row_of: dict[str, int] = {}
        self._numbers = count()
        self._sessions: dict[str, int] = {}
        self._speakers: dict[str, int] = {}
        self._columns = {name: Column(kind) for name, kind in _COLUMNS.items()}
        self._vectors: Column | None = None if dimensions is None else Column(np.float32, dimensions)
        self._layout: Layout | None = None
        self.add(documents)

    def __len__(self) -> int:
        return len(self.documents)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._row_of

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents. An id that is in use is a `ValueError`; the documents before it stay."""
        self._layout = None
        for document in documents:
            if document.id in self._row_of:
                raise ValueError("a document with this id is in the corpus already")
            self._add(document)

    def remove(self, document_ids: Collection[str]) -> int:
        """Remove documents and return how many were removed. Unknown ids are ignored."""
        gone = {self._row_of[each] for each in document_ids if each in self._row_of}
        if gone:
            self._layout = None
            self._keep(np.array([row for row in range(len(self)) if row not in gone], np.int64))
        return len(gone)

    def column(self, name: str) -> NDArray[Any]:
        """A column with a value for each row: `length`, `speaker`, `day`, …"""
        return self._columns[name].values

    @property
    def vectors(self) -> Vectors | None:
        """The unit vectors by row; zeros for rows without a vector, as `has_vector` says."""
        return None if self._vectors is None else self._vectors.values

    @property
    def dimensions(self) -> int | None:
        """The dimensions of the vectors, as given or those of the first vector; `None` without vectors."""
        return self._dimensions

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

    def _add(self, document: Document) -> None:
        found = Counter(terms(document.text))
        vector = self._usable(document.vector)
        values = {
            **self._place(document),
            **_traits(document, found.total()),
            "has_vector": vector is not None,
        }
        for name, column in self._columns.items():
            column.append(values[name])
        if self._vectors is not None:
            self._vectors.append(0.0 if vector is None else vector)
        row = len(self.documents)
        self.postings.add(row, found)
        self.postings.add(row, Counter(each for each in characters(document.text) if each not in found))
        self._row_of[document.id] = row
        self.documents.append(replace(document, vector=None))

    def _place(self, document: Document) -> dict[str, float]:
        session, speaker = document.session, document.speaker
        return {
            "session": next(self._numbers) if session is None else self._number(self._sessions, session),
            "has_session": session is not None,
            "position": document.position,
            "speaker": NOBODY if speaker is None else self._number(self._speakers, speaker),
            "day": document.time.toordinal() if document.time else NO_DAY,
            "seconds": _seconds(document.time),
        }

    def _number(self, numbers: dict[str, int], name: str) -> int:
        if name not in numbers:
            numbers[name] = next(self._numbers)
        return numbers[name]

    def _usable(self, given: Any) -> Vector | None:
        """The unit vector, if it can be compared, else `None`. The first vector sets the dimensions."""
        vector = np.zeros(0) if given is None else np.asarray(given, np.float64)
        size = float(np.linalg.norm(vector))
        if vector.ndim != 1 or not np.isfinite(size) or size == 0.0:
            return None
        if self._vectors is None:
            self._dimensions = len(vector)
            self._vectors = Column(np.float32, len(vector))
            self._vectors.append_zeros(len(self))
        return (vector / size).astype(np.float32) if len(vector) == self._dimensions else None

    def _keep(self, rows: Numbers) -> None:
        new_rows = np.full(len(self), -1, np.int64)
        new_rows[rows] = np.arange(len(rows))
        self.postings.renumber(new_rows)
        for column in self._columns.values():
            column.keep(rows)
        if self._vectors is not None:
            self._vectors.keep(rows)
        self.documents = [self.documents[row] for row in rows]
        self._row_of = {document.id: row for row, document in enumerate(self.documents)}
        present = {document.speaker for document in self.documents}
        self._speakers = {name: number for name, number in self._speakers.items() if name in present}


def _traits(document: Document, length: int) -> dict[str, float]:
    speakers = frozenset((document.speaker or "").lower().split())
    return {
        "length": length,
        "question": question_share(document.text),
        "names": name_share(document.text, speakers),
        "time": names_time(document.text),
        "substance": substance(length),
    }


def _seconds(time: datetime | None) -> float:
    """Seconds since the start of the calendar in local time; 0 if the time is unknown."""
    if time is None:
        return 0.0
    return time.toordinal() * 86400.0 + time.hour * 3600 + time.minute * 60 + time.second
