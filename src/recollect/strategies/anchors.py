"""Anchors: where a history was cut, with the summary of the part before the cut; stored as session notes.

With an anchor, only the items after it are read. An anchor holds a digest of the last item before the cut. If
that item changed, by an undo past the cut, a repair or a switch of branch, the anchor is built again.
"""

import hashlib
import json
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

import msgspec

from ..errors import RecollectError
from ..items import Item
from ..sessions.protocol import Noted, Session, with_ability
from .cut import Trigger
from .values import Strategy

logger = logging.getLogger(__name__)

_FORMAT = 1
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Mark:
    """The end of a range of whole turns that starts with the first turn."""

    turns: int = 0
    position: int = 0
    """The position of the last item of the range; 0 if the range is empty."""
    check: str = ""
    """A digest of that item."""
    digest: str = ""
    """A digest of all items of the range."""

    def extended(self, turns: int, position: int, items: Sequence[Item]) -> "Mark":
        """The mark after `turns` more turns, which consist of `items` and end at `position`."""
        return Mark(self.turns + turns, position, digest([items[-1]]), digest(items, self.digest))


@dataclass(frozen=True)
class StoredSummary:
    """A summary of a range of turns."""

    text: str = field(repr=False)
    covers: Mark
    version: int = 1
    """1 for the first summary, plus 1 for each extension."""
    model: str | None = None


@dataclass(frozen=True)
class Claim:
    """A lease on making the summary. Others wait for the owner's summary until it expires."""

    owner: str
    until: float
    """When it expires, in seconds since 1970."""


@dataclass(frozen=True)
class Anchor:
    """The state of a view: where the history was cut, and the summary of the part before the cut."""

    head: int
    """How many items precede the first turn."""
    cut: Mark
    behind: int = 0
    """Tokens of the view that belong to turns before the cut."""
    summary: StoredSummary | None = None
    claim: Claim | None = None
    trigger: Trigger = "turns"
    """The limit that moved the cut last."""

    @property
    def summarized(self) -> Mark:
        """The range of turns that the summary covers."""
        return self.summary.covers if self.summary else Mark()

    @property
    def needs_summary(self) -> bool:
        """Whether the summary does not cover all turns before the cut."""
        return self.summarized.turns < self.cut.turns

    def with_summary(self, summary: StoredSummary) -> "Anchor":
        """The anchor with this summary and without a claim."""
        return replace(self, summary=summary, claim=None)

    def to_note(self) -> dict[str, Any]:
        """The anchor as the data of a note."""
        return {"format": _FORMAT, **asdict(self)}

    @classmethod
    def from_note(cls, data: Mapping[str, Any]) -> Self | None:
        """Parse the data of a note; `None` if its format is unknown."""
        if data.get("format") != _FORMAT:
            return None
        try:
            summary, claim = data["summary"], data["claim"]
            return cls(
                int(data["head"]),
                Mark(**data["cut"]),
                int(data["behind"]),
                summary and StoredSummary(**{**summary, "covers": Mark(**summary["covers"])}),
                claim and Claim(**claim),
                data["trigger"],
            )
        except (KeyError, TypeError, ValueError):
            return None


def note_key(strategy: Strategy, branch: str | None) -> str:
    """The key of the note for a strategy and a branch. Other settings or branches have other anchors."""
    settings = {each.name: getattr(strategy, each.name) for each in fields(strategy)}
    settings.pop("summary_prefix", None)  # it does not change where the history is cut
    known_as = json.dumps([branch, settings], sort_keys=True)
    return f"working-memory:{strategy.mode}:{hashlib.sha256(known_as.encode()).hexdigest()[:24]}"


def digest(items: Iterable[Item], before: str = "") -> str:
    """A digest of items that continues the digest `before`. Splitting the items does not change it."""
    state = bytes.fromhex(before)
    for item in items:
        state = hashlib.sha256(state + _canonical(item)).digest()
    return state.hex()


def _canonical(item: Item) -> bytes:
    try:
        return _encode(item)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return json.dumps(item).encode()


@dataclass(frozen=True)
class StoredAnchor:
    """An anchor with the version of its note. A write succeeds only if the version is still the same."""

    anchor: Anchor | None = None
    version: int = 0


@dataclass
class _ProcessNotes:
    """Notes in memory, for a session that cannot store notes."""

    _stored: dict[str, StoredAnchor] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def get(self, key: str) -> StoredAnchor:
        return self._stored.get(key, StoredAnchor())

    async def put(self, key: str, anchor: Anchor, version: int) -> bool:
        with self._lock:
            is_current = self._stored.get(key, StoredAnchor()).version == version
            if is_current:
                self._stored[key] = StoredAnchor(anchor, version + 1)
            return is_current


class AnchorNotes:
    """Anchors by key: notes of the session if it can store notes, otherwise in this process.

    A failed write does not prevent a view: the anchor is then not stored, and is computed again next time.
    """

    def __init__(self, session: Session) -> None:
        self._notes: Noted | _ProcessNotes = with_ability(session, Noted) or _ProcessNotes()

    async def get(self, key: str) -> StoredAnchor:
        """The stored anchor, if any, and its version."""
        if isinstance(self._notes, _ProcessNotes):
            return await self._notes.get(key)
        note = await self._notes.get_note(key)
        return StoredAnchor() if note is None else StoredAnchor(Anchor.from_note(note.data), note.version)

    async def put(self, key: str, anchor: Anchor, version: int) -> StoredAnchor | None:
        """Replace the anchor of this version; `None` if another writer replaced it first."""
        try:
            is_current = await self._set(key, anchor, version)
        except (RecollectError, OSError) as error:
            logger.warning("anchor of a view could not be stored (%s)", type(error).__name__)
            return StoredAnchor(anchor, version)
        return StoredAnchor(anchor, version + 1) if is_current else None

    async def _set(self, key: str, anchor: Anchor, version: int) -> bool:
        if isinstance(self._notes, _ProcessNotes):
            return await self._notes.put(key, anchor, version)
        return await self._notes.set_note(key, anchor.to_note(), version)
