"""How entries change when messages are erased: decided over values.

The messages that one run cites for an entry are a group. A group supports the entry together: it is whole
while none of its messages is erased. An entry stays while one of its groups is whole, in the wording of such
a group.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...sql.columns import StoredTime


@dataclass(frozen=True)
class AffectedEntry:
    """An entry that the erased messages support, or one that it superseded."""

    content_id: str
    position: int
    text: str = field(repr=False)
    run_id: str | None = None
    """The run that wrote its wording; `None` if a person wrote it."""
    valid_from: str | None = None
    valid_to: str | None = None
    retired_at: StoredTime | None = None
    superseded_by: str | None = None


@dataclass(frozen=True)
class EvidenceGroup:
    """The evidence that one source has for an entry."""

    content_id: str
    source: str
    wording: str = field(repr=False)
    is_whole: bool
    sequence: int = 0
    """Orders the groups of an entry, the oldest first."""


@dataclass(frozen=True)
class EntryChanges:
    """The entries to remove, and those that get the wording of another group."""

    removed: tuple[AffectedEntry, ...]
    reworded: tuple[tuple[AffectedEntry, EvidenceGroup], ...]


@dataclass(frozen=True)
class Succession:
    """The new state of an entry that was superseded by a removed one."""

    entry: AffectedEntry
    retired_at: StoredTime | None
    superseded_by: str | None
    valid_to: str | None


def decide_changes(entries: Iterable[AffectedEntry], groups: Iterable[EvidenceGroup]) -> EntryChanges:
    """Which of the affected entries are removed, and which are reworded. The others stay as they are."""
    by_entry: dict[str, list[EvidenceGroup]] = {}
    for group in groups:
        by_entry.setdefault(group.content_id, []).append(group)
    removed: list[AffectedEntry] = []
    reworded: list[tuple[AffectedEntry, EvidenceGroup]] = []
    for entry in entries:
        own = by_entry.get(entry.content_id, [])
        whole = sorted((group for group in own if group.is_whole), key=lambda group: group.sequence)
        if _keeps_its_wording(entry, own):
            continue
        if whole:
            reworded.append((entry, whole[0]))
        else:
            removed.append(entry)
    return EntryChanges(tuple(removed), tuple(reworded))


def _keeps_its_wording(entry: AffectedEntry, groups: Sequence[EvidenceGroup]) -> bool:
    """Whether the source of its wording still supports it. A person who cited no message always does."""
    shown = [group for group in groups if group.source == (entry.run_id or "")]
    return shown[0].is_whole if shown else entry.run_id is None


def successions(removed: Iterable[AffectedEntry], precursors: Iterable[AffectedEntry]) -> list[Succession]:
    """The new states of the entries that the removed ones had superseded.

    Such an entry becomes current again, or is superseded by the entry that had superseded the removed one.
    """
    gone = {entry.content_id: entry for entry in removed}
    return [_succession(entry, gone) for entry in precursors if entry.content_id not in gone]


def _succession(entry: AffectedEntry, gone: Mapping[str, AffectedEntry]) -> Succession:
    first = last = gone[entry.superseded_by or ""]
    seen = {first.content_id}
    while (following := gone.get(last.superseded_by or "")) and following.content_id not in seen:
        last = following
        seen.add(last.content_id)
    valid_to = entry.valid_to
    if valid_to is not None and valid_to == first.valid_from:  # it ended when the removed one began
        valid_to = last.valid_to if last.superseded_by else None
    return Succession(entry, last.retired_at, last.superseded_by, valid_to)
