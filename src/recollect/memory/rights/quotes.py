"""Stored results of runs that quote erased texts: finding and deleting them.

Stages, failures and conversations store model responses, which may quote what a user said. A scan of all of
them can be slow, so it runs before the transaction, page by page. Within the transaction only the results
that were stored since are scanned.

The search finds many texts at once, word for word, also where JSON has escaped them several times. A text is
known by the hash of its last characters. All hashes of the searched text are computed at once, so a search
for a thousand texts takes hardly longer than one for a single text.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...sql.columns import text_from_column
from ...sql.scripts import Row, Script, Statement
from ..database.corruption import UNREADABLE
from ..database.dialect import Dialect
from ..database.schema import CONVERSATIONS, FAILURES, RUNS, STAGES

if TYPE_CHECKING:
    from ..database.access import MemoryDatabase

_SHORTEST = 8  # bytes: shorter texts occur in many responses by chance
_WIDTHS = (8, 16, 32)  # characters that are hashed: the widest that fits into the text
_BASE = 0x9E3779B97F4A7C15
_MARKED_BITS = 16
_UNMARKED = np.uint64(64 - _MARKED_BITS)
# JSON within JSON has any number of backslashes.
_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|x([0-9a-fA-F]{2})|([nrtbf]))?")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_SURROGATES = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """A text without escapes, case and extra spaces: texts that differ only in these become equal."""
    if "\\" in text:
        text = _ESCAPED.sub(_meant, text)
    if not text.isascii() and _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return " ".join(text.casefold().split())


def _meant(escaped: re.Match[str]) -> str:
    *codes, control = escaped.groups()
    code = next((int(each, 16) for each in codes if each), None)
    if code is None:
        return _CONTROLS.get(control, "")
    return chr(code) if code < 0x110000 else ""


class Quotes:
    """Texts to search for, prepared for many searches."""

    def __init__(self, texts: Iterable[str]) -> None:
        wanted = {each for each in map(plain, texts) if len(each.encode("utf-8", "replace")) >= _SHORTEST}
        self._short = [each for each in wanted if len(each) < _WIDTHS[0]]
        self._by_end: dict[int, dict[int, list[str]]] = {}
        for text in wanted.difference(self._short):
            width, hashes = list(_hashes(text[-_WIDTHS[-1] :]))[-1]
            self._by_end.setdefault(width, {}).setdefault(int(hashes[-1]), []).append(text)
        self._marked = {width: _marks(ends) for width, ends in self._by_end.items()}

    def __bool__(self) -> bool:
        return bool(self._short or self._by_end)

    def occur_in(self, *columns: str) -> bool:
        """Whether any of the texts occurs in any of these columns."""
        return any(self._occur_in(plain(text_from_column(column))) for column in columns)

    def _occur_in(self, said: str) -> bool:
        if any(text in said for text in self._short):
            return True
        return any(
            said.endswith(text, 0, place + width)
            for width, hashes in _hashes(said)
            if width in self._marked
            for place in np.flatnonzero(self._marked[width][hashes >> _UNMARKED]).tolist()
            for text in self._by_end[width].get(int(hashes[place]), ())
        )


def _hashes(text: str) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """The hashes of the characters from each place on, for each width that fits into the text."""
    hashes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    width = 1
    while 2 * width <= min(len(text), _WIDTHS[-1]):  # the hash of two halves
        hashes = hashes[:-width] * np.uint64(pow(_BASE, width, 2**64)) + hashes[width:]
        width *= 2
        if width in _WIDTHS:
            yield width, hashes


def _marks(hashes: Iterable[int]) -> NDArray[np.bool_]:
    """A filter by the first bits of hashes: a hash that is not marked need not be looked up."""
    marked = np.zeros(2**_MARKED_BITS, np.bool_)
    marked[[each >> int(_UNMARKED) for each in hashes]] = True
    return marked


# --- stored results ---

_PAGE_SIZE = 20  # runs or conversations
_OF_MEMORY = f"run_id IN (SELECT run_id FROM {RUNS.name} WHERE memory_id = ?1)"
# The result of a conversation has no time of its own. It changes with each run that is done.
_VERSION = (
    "(SELECT CAST(count(*) AS VARCHAR) || ' ' || coalesce(CAST(max(finished_at) AS VARCHAR), '')"
    f" FROM {RUNS.name} WHERE conversation_id = talk.conversation_id AND status = 'done')"
)


class StoredResult(NamedTuple):
    """A stage, a failure or the result of a conversation, in the version that a scan has seen."""

    kind: str
    key: str
    """The id of the run or of the conversation."""
    part: str
    """The stage or the attempt."""
    version: str


@dataclass(frozen=True)
class QuoteScan:
    """The texts that were searched for, the results that were searched, and those that quote a text."""

    texts: frozenset[str] = field(default=frozenset(), repr=False)
    seen: frozenset[StoredResult] = frozenset()
    quoting: frozenset[StoredResult] = frozenset()


class ResultQueries:
    """The statements about stored results, in one dialect."""

    outline = (
        "SELECT 'stage', run_id, stage, CAST(finished_at AS VARCHAR)"
        f" FROM {STAGES.name} WHERE {_OF_MEMORY}"
        " UNION ALL SELECT 'failure', run_id, CAST(attempt AS VARCHAR), CAST(failed_at AS VARCHAR)"
        f" FROM {FAILURES.name} WHERE {_OF_MEMORY}"
        f" UNION ALL SELECT 'result', conversation_id, '', {_VERSION} FROM {CONVERSATIONS.name} AS talk"
        " WHERE memory_id = ?1 AND pipeline_result IS NOT NULL"
    )

    def __init__(self, dialect: Dialect) -> None:
        ids = dialect.each.format("?1")
        self.contents = {
            "stage": "SELECT run_id, stage, CAST(result AS VARCHAR), raw_response"
            f" FROM {STAGES.name} WHERE run_id IN {ids}",
            "failure": "SELECT run_id, CAST(attempt AS VARCHAR), error, raw_response"
            f" FROM {FAILURES.name} WHERE run_id IN {ids}",
            "result": "SELECT conversation_id, '', CAST(pipeline_result AS VARCHAR)"
            f" FROM {CONVERSATIONS.name} WHERE conversation_id IN {ids} AND pipeline_result IS NOT NULL",
        }
        key, part = (dialect.element.format("value", place) for place in (0, 1))
        self.delete = {
            "stage": f"DELETE FROM {STAGES.name} WHERE (run_id, stage) IN"
            f" (SELECT {key}, {part} FROM {ids} AS gone)",
            "failure": f"DELETE FROM {FAILURES.name} WHERE (run_id, attempt) IN"
            f" (SELECT {key}, CAST({part} AS BIGINT) FROM {ids} AS gone)",
            "result": f"UPDATE {CONVERSATIONS.name} SET pipeline_result = NULL WHERE conversation_id IN"
            f" (SELECT {key} FROM {ids} AS gone)",
        }


async def scan_results(database: "MemoryDatabase", memory_id: str, texts: Iterable[str]) -> QuoteScan:
    """Search the stored results of a memory for texts, outside of any transaction."""
    wanted, queries = frozenset(texts), database.removal.results
    quotes = Quotes(wanted)
    if not quotes:
        return QuoteScan(wanted)
    outline = await database.fetch(queries.outline, (memory_id,), _results_from)
    quoting: set[StoredResult] = set()
    for kind, page in _pages(outline):
        rows = await database.fetch(queries.contents[kind], (_keys_of(page),), list[Row])
        quoting.update(await asyncio.to_thread(_quoting, quotes, page, rows))
    return QuoteScan(wanted, frozenset(outline), frozenset(quoting))


def delete_quoting_results(
    queries: ResultQueries, memory_id: str, texts: Iterable[str], scan: QuoteScan
) -> Script[None]:
    """Delete the stored results of a memory that quote texts. Results that the scan has seen are not read."""
    wanted = frozenset(texts)
    quotes = Quotes(wanted)
    if not quotes:
        return
    outline = _results_from((yield Statement(queries.outline, (memory_id,))))
    seen = scan.seen if wanted <= scan.texts else frozenset()
    gone = [result for result in outline if result in seen and result in scan.quoting]
    for kind, page in _pages([result for result in outline if result not in seen]):
        rows = yield Statement(queries.contents[kind], (_keys_of(page),))
        gone += _quoting(quotes, page, rows)
    for kind, delete in queries.delete.items():
        keys = [[result.key, result.part] for result in gone if result.kind == kind]
        if keys:
            yield Statement(delete, (json.dumps(keys),))


def _results_from(rows: Sequence[Row]) -> list[StoredResult]:
    return [StoredResult(*row) for row in rows]


def _pages(outline: Iterable[StoredResult]) -> Iterator[tuple[str, list[StoredResult]]]:
    """Pages of results of one kind. The results of one run are on the same page."""
    by_key = [list(group) for _, group in groupby(sorted(outline), key=lambda each: (each.kind, each.key))]
    for kind, of_kind in groupby(by_key, key=lambda of_key: of_key[0].kind):
        keys = list(of_kind)
        for start in range(0, len(keys), _PAGE_SIZE):
            yield kind, [result for of_key in keys[start : start + _PAGE_SIZE] for result in of_key]


def _keys_of(page: Iterable[StoredResult]) -> str:
    return json.dumps(sorted({result.key for result in page}))


def _quoting(quotes: Quotes, page: Iterable[StoredResult], rows: Iterable[Row]) -> list[StoredResult]:
    """The results of a page whose rows quote a text."""
    found = {(key, part) for key, part, *columns in rows if _may_quote(quotes, columns)}
    return [result for result in page if (result.key, result.part) in found]


def _may_quote(quotes: Quotes, columns: Iterable[Any]) -> bool:
    """Whether columns quote a text. Corrupt columns may do so: they are deleted with the erased texts."""
    try:
        return quotes.occur_in(*columns)
    except UNREADABLE:
        return True
