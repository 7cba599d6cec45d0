"""What a reader yields, and what an import reports.

A reader turns a source into records of one format: the lines that `recollect export` writes and that
`schema.json` describes. The importer knows nothing of other systems.
"""

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

_NAMESPACE = uuid.UUID("6b1ff1e4-7d0c-5e0f-9a4e-2f9c3d1b7a55")
_MOST_LISTED = 1000  # problems whose lines are kept; all are counted


STORE_ITEMS = "store_items"
"""The kind of the items of LangGraph's store, which are imported by the store itself."""


@dataclass(frozen=True)
class Record:
    """One line: its kind, its data, and the place in the source for messages about it."""

    kind: str
    data: dict[str, Any] = field(repr=False)
    where: str
    size: int = 0
    """The bytes of its line, if it was read from one."""


@dataclass(frozen=True)
class Skipped:
    """A part of the source that is not imported as it is, and why.

    With `is_lost` false it had nothing to import, such as an empty conversation.
    """

    where: str
    reason: str
    is_lost: bool = True


Read: TypeAlias = Iterator[Record | Skipped]


class Reader(Protocol):
    """Reads a source. It is pure: it writes nothing, and reads the same records each time."""

    def __call__(self, source: Any) -> Read:
        """Yield the records. Raises `ImportFormatError` if the source as a whole cannot be read."""
        ...


@dataclass
class ImportReport:
    """What an import added, what was there already, and what it could not take over."""

    added: Counter[str] = field(default_factory=Counter)
    """New rows by kind, messages and items of sessions included."""
    existing: Counter[str] = field(default_factory=Counter)
    """Rows that were stored already, by kind."""
    problems: list[Skipped] = field(default_factory=list)
    """The first thousand parts that were lost or changed."""
    lost: int = 0
    """How many parts were lost or changed."""
    empty: Counter[str] = field(default_factory=Counter)
    """Parts that had nothing to import, by reason."""

    def skip(self, skipped: Skipped) -> None:
        """Count a part that was not imported as it is."""
        if not skipped.is_lost:
            self.empty[skipped.reason] += 1
            return
        self.lost += 1
        if len(self.problems) < _MOST_LISTED:
            self.problems.append(skipped)

    def merge(self, other: "ImportReport") -> None:
        """Add another report to this one."""
        self.added.update(other.added)
        self.existing.update(other.existing)
        self.empty.update(other.empty)
        self.lost += other.lost
        self.problems += other.problems[: max(0, _MOST_LISTED - len(self.problems))]

    @property
    def is_complete(self) -> bool:
        """Whether everything was taken over."""
        return not self.lost

    def to_dict(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "added": dict(self.added),
            "existing": dict(self.existing),
            "lost": self.lost,
            "problems": [{"where": each.where, "reason": each.reason} for each in self.problems],
            "empty": dict(self.empty),
        }


def stable_id(*parts: Any) -> str:
    """An id that depends on its parts alone, so that a repeated import finds what it added before."""
    given = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=True)
    return str(uuid.uuid5(_NAMESPACE, hashlib.sha256(given.encode()).hexdigest()))
