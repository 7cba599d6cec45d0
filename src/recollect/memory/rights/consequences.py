"""What becomes of entries when messages are erased: decided over values.

The messages that one run cites for an entry are a group, and support it together: the group is whole while
none of them is erased. An entry stands while a group of it is whole, in the wording of such a group.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...sql.columns import StoredTime


@dataclass(frozen=True)
class Held:
    """An entry, as far as it matters here."""

    content_id: str
    position: int
    text: str = field(repr=False)
    run_id: str | None = None
    """The run whose wording it shows; `None` if a person wrote it."""
    valid_from: str | None = None
    valid_to: str | None = None
    retired_at: StoredTime | None = None
    superseded_by: str | None = None


@dataclass(frozen=True)
class Group:
    """The evidence that one source has for an entry."""

    content_id: str
    source: str
    wording: str = field(repr=False)
    is_whole: bool
    sequence: int = 0
    """Its place among those of the entry: the oldest comes first."""


@dataclass(frozen=True)
class Standing:
    """Which entries stand no more, and which stand in other words."""

    removed: tuple[Held, ...]
    reworded: tuple[tuple[Held, Group], ...]


@dataclass(frozen=True)
class Succession:
    """What follows for an entry that was superseded by one that is gone."""

    entry: Held
    retired_at: StoredTime | None
    superseded_by: str | None
    valid_to: str | None


def standing_of(touched: Iterable[Held], groups: Iterable[Group]) -> Standing:
    """What is left of entries that the erased messages had a part in."""
    by_entry: dict[str, list[Group]] = {}
    for group in groups:
        by_entry.setdefault(group.content_id, []).append(group)
    removed: list[Held] = []
    reworded: list[tuple[Held, Group]] = []
    for entry in touched:
        own = by_entry.get(entry.content_id, [])
        whole = sorted((group for group in own if group.is_whole), key=lambda group: group.sequence)
        if _keeps_its_words(entry, own):
            continue
        if whole:
            reworded.append((entry, whole[0]))
        else:
            removed.append(entry)
    return Standing(tuple(removed), tuple(reworded))


def _keeps_its_words(entry: Held, groups: Sequence[Group]) -> bool:
    """Whether whoever worded it still stands for it: a person who cited nothing always does."""
    shown = [group for group in groups if group.source == (entry.run_id or "")]
    return shown[0].is_whole if shown else entry.run_id is None


def successions(removed: Iterable[Held], precursors: Iterable[Held]) -> list[Succession]:
    """What the removed have superseded comes back, or is superseded by what had superseded them."""
    gone = {entry.content_id: entry for entry in removed}
    return [_succession(entry, gone) for entry in precursors if entry.content_id not in gone]


def _succession(entry: Held, gone: Mapping[str, Held]) -> Succession:
    first = last = gone[entry.superseded_by or ""]
    seen = {first.content_id}
    while (following := gone.get(last.superseded_by or "")) and following.content_id not in seen:
        last = following
        seen.add(last.content_id)
    valid_to = entry.valid_to
    if valid_to is not None and valid_to == first.valid_from:  # it ended when that began
        valid_to = last.valid_to if last.superseded_by else None
    return Succession(entry, last.retired_at, last.superseded_by, valid_to)
