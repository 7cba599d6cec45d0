"""Finding many texts in many others, word for word, however often they were escaped on the way.

A text is known by the hash of its last characters. Of what is looked through, the hashes of as many
characters at every place are made at once: so to look for a thousand texts takes hardly longer than for one.
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

_SHORTEST = 8  # bytes: what is shorter stands in many an answer by chance
_WIDTHS = (8, 16, 32)  # characters that are hashed: as many of a text as it has
_BASE = 0x9E3779B97F4A7C15
_MARKED_BITS = 16
_UNMARKED = np.uint64(64 - _MARKED_BITS)
# JSON within JSON has as many backslashes as it likes.
_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|x([0-9a-fA-F]{2})|([nrtbf]))?")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_HALVES = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """A text without escapes: the same for all that differ in those, in spaces and in case alone."""
    if "\\" in text:
        text = _ESCAPED.sub(_meant, text)
    if not text.isascii() and _HALVES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return " ".join(text.casefold().split())


def _meant(escaped: re.Match[str]) -> str:
    *codes, control = escaped.groups()
    code = next((int(each, 16) for each in codes if each), None)
    if code is None:
        return _CONTROLS.get(control, "")
    return chr(code) if code < 0x110000 else ""


class Quotes:
    """Texts that are looked for, made ready to be looked for often."""

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

    def stand_in(self, *columns: str) -> bool:
        """Whether any of the texts stands in any of these columns."""
        return any(self._stand_in(plain(text_from_column(column))) for column in columns)

    def _stand_in(self, said: str) -> bool:
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
    """The hashes of so many characters from every place on, for each width that the text has."""
    hashes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    width = 1
    while 2 * width <= min(len(text), _WIDTHS[-1]):  # two halves make a whole
        hashes = hashes[:-width] * np.uint64(pow(_BASE, width, 2**64)) + hashes[width:]
        width *= 2
        if width in _WIDTHS:
            yield width, hashes


def _marks(hashes: Iterable[int]) -> NDArray[np.bool_]:
    """Which first bits hashes have: what has others need not be looked up."""
    marked = np.zeros(2**_MARKED_BITS, np.bool_)
    marked[[each >> int(_UNMARKED) for each in hashes]] = True
    return marked


_AT_ONCE = 20  # runs or conversations of a page
_OF_MEMORY = f"run_id IN (SELECT run_id FROM {RUNS.name} WHERE memory_id = ?1)"
# A result changes with each run that is done, and tells no time of its own.
_RESULT_OF = (
    "(SELECT CAST(count(*) AS VARCHAR) || ' ' || coalesce(CAST(max(finished_at) AS VARCHAR), '')"
    f" FROM {RUNS.name} WHERE conversation_id = told.conversation_id AND status = 'done')"
)


class Kept(NamedTuple):
    """A kept answer: of which kind, of which run or conversation, which of those, and since when."""

    kind: str
    key: str
    part: str
    kept_at: str


@dataclass(frozen=True)
class Looked:
    """What was looked through, for which texts, and which of it quotes them."""

    texts: frozenset[str] = field(default=frozenset(), repr=False)
    seen: frozenset[Kept] = frozenset()
    quoting: frozenset[Kept] = frozenset()


class AnswerQueries:
    """The statements about kept answers, in one dialect."""

    outline = (
        "SELECT 'stage', run_id, stage, CAST(finished_at AS VARCHAR)"
        f" FROM {STAGES.name} WHERE {_OF_MEMORY}"
        " UNION ALL SELECT 'failure', run_id, CAST(attempt AS VARCHAR), CAST(failed_at AS VARCHAR)"
        f" FROM {FAILURES.name} WHERE {_OF_MEMORY}"
        f" UNION ALL SELECT 'result', conversation_id, '', {_RESULT_OF} FROM {CONVERSATIONS.name} AS told"
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
        self.forget = {
            "stage": f"DELETE FROM {STAGES.name} WHERE (run_id, stage) IN"
            f" (SELECT {key}, {part} FROM {ids} AS gone)",
            "failure": f"DELETE FROM {FAILURES.name} WHERE (run_id, attempt) IN"
            f" (SELECT {key}, CAST({part} AS BIGINT) FROM {ids} AS gone)",
            "result": f"UPDATE {CONVERSATIONS.name} SET pipeline_result = NULL WHERE conversation_id IN"
            f" (SELECT {key} FROM {ids} AS gone)",
        }


async def look_for_quotes(database: "MemoryDatabase", memory_id: str, texts: Iterable[str]) -> Looked:
    """Look through the kept answers of a memory for texts, outside of any transaction."""
    wanted, queries = frozenset(texts), database.removal.answers
    quotes = Quotes(wanted)
    if not quotes:
        return Looked(wanted)
    outline = await database.fetch(queries.outline, (memory_id,), _kept_from)
    quoting: set[Kept] = set()
    for kind, page in _pages(outline):
        rows = await database.fetch(queries.contents[kind], (_keys_of(page),), list[Row])
        quoting.update(await asyncio.to_thread(_quoting, quotes, page, rows))
    return Looked(wanted, frozenset(outline), frozenset(quoting))


def forget_quotes(
    queries: AnswerQueries, memory_id: str, texts: Iterable[str], looked: Looked
) -> Script[None]:
    """Remove the kept answers of a memory that quote texts; what was looked through is believed."""
    wanted = frozenset(texts)
    quotes = Quotes(wanted)
    if not quotes:
        return
    outline = _kept_from((yield Statement(queries.outline, (memory_id,))))
    seen = looked.seen if wanted <= looked.texts else frozenset()
    gone = [kept for kept in outline if kept in seen and kept in looked.quoting]
    for kind, page in _pages([kept for kept in outline if kept not in seen]):
        rows = yield Statement(queries.contents[kind], (_keys_of(page),))
        gone += _quoting(quotes, page, rows)
    for kind, forget in queries.forget.items():
        keys = [[kept.key, kept.part] for kept in gone if kept.kind == kind]
        if keys:
            yield Statement(forget, (json.dumps(keys),))


def _kept_from(rows: Sequence[Row]) -> list[Kept]:
    return [Kept(*row) for row in rows]


def _pages(outline: Iterable[Kept]) -> Iterator[tuple[str, list[Kept]]]:
    """Kept answers of one kind, with all that a run has on the same page."""
    by_key = [list(of_key) for _, of_key in groupby(sorted(outline), key=lambda kept: (kept.kind, kept.key))]
    for kind, of_kind in groupby(by_key, key=lambda of_key: of_key[0].kind):
        keys = list(of_kind)
        for start in range(0, len(keys), _AT_ONCE):
            yield kind, [kept for of_key in keys[start : start + _AT_ONCE] for kept in of_key]


def _keys_of(page: Iterable[Kept]) -> str:
    return json.dumps(sorted({kept.key for kept in page}))


def _quoting(quotes: Quotes, page: Iterable[Kept], rows: Iterable[Row]) -> list[Kept]:
    """Those of a page whose rows quote."""
    found = {(key, part) for key, part, *columns in rows if _may_quote(quotes, columns)}
    return [kept for kept in page if (kept.key, kept.part) in found]


def _may_quote(quotes: Quotes, columns: Iterable[Any]) -> bool:
    """Whether columns quote. Corrupt ones may do so, and go with what is erased."""
    try:
        return quotes.stand_in(*columns)
    except UNREADABLE:
        return True
