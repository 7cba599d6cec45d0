"""How far a history was cut, and what stands for what was cut: as values, and as notes beside the history.

Who knows the anchor reads only what comes after it. An anchor tells by the item it ends with whether it still
fits the history: after an undo past the cut, a repair or a switch of branch, it does not, and is made again.
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

_FORMAT = 1
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Mark:
    """The end of a stretch of whole turns that begins with the first turn."""

    turns: int = 0
    position: int = 0
    """Of the last item of the stretch; 0 where it is empty."""
    check: str = ""
    """A digest of that item."""
    digest: str = ""
    """A digest of all items of the stretch."""

    def extended(self, turns: int, position: int, items: Sequence[Item]) -> "Mark":
        """The mark after some turns more, which are these items and end at this position."""
        return Mark(self.turns + turns, position, digest([items[-1]]), digest(items, self.digest))


@dataclass(frozen=True)
class StoredSummary:
    """A summary of a stretch of turns."""

    text: str = field(repr=False)
    covers: Mark
    version: int = 1
    """How often the summary was extended, with the first time."""
    model: str | None = None


@dataclass(frozen=True)
class Claim:
    """Somebody is about to make a summary: others wait, until a time in seconds since 1970."""

    owner: str
    until: float


@dataclass(frozen=True)
class Anchor:
    """What is known of a history without reading it again."""

    head: int
    """How many items stand before the first turn."""
    cut: Mark
    behind: int = 0
    """Tokens that the turns behind the cut still cost the view."""
    summary: StoredSummary | None = None
    claim: Claim | None = None
    trigger: Trigger = "turns"
    """What made the cut move last."""

    @property
    def summarized(self) -> Mark:
        """How far the summary goes."""
        return self.summary.covers if self.summary else Mark()

    @property
    def lags(self) -> bool:
        """Whether turns were cut that the summary does not tell of."""
        return self.summarized.turns < self.cut.turns

    def with_summary(self, summary: StoredSummary) -> "Anchor":
        """The anchor with a summary, which nobody need make any more."""
        return replace(self, summary=summary, claim=None)

    def to_note(self) -> dict[str, Any]:
        """The anchor as a note beside the history."""
        return {"format": _FORMAT, **asdict(self)}

    @classmethod
    def from_note(cls, data: Mapping[str, Any]) -> Self | None:
        """The anchor that a note holds; `None` if that is none we understand."""
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
    """Under what key the anchor of a strategy is kept: anchors of other knobs or branches do not fit."""
    knobs = {knob.name: getattr(strategy, knob.name) for knob in fields(strategy)}
    knobs.pop("summary_prefix", None)  # it only introduces the summary
    known_as = json.dumps([branch, knobs], sort_keys=True)
    return f"working-memory:{strategy.mode}:{hashlib.sha256(known_as.encode()).hexdigest()[:24]}"


def digest(items: Iterable[Item], before: str = "") -> str:
    """A digest of items, as the continuation of another: it is the same however they were parted."""
    state = bytes.fromhex(before)
    for item in items:
        state = hashlib.sha256(state + _canonical(item)).digest()
    return state.hex()


def _canonical(item: Item) -> bytes:
    try:
        return _encode(item)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return json.dumps(item).encode()


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kept:
    """An anchor as it is kept; the version says whether another was kept since."""

    anchor: Anchor | None = None
    version: int = 0


@dataclass
class _InProcess:
    """Notes of a session that has none of its own."""

    _kept: dict[str, Kept] = field(default_factory=dict)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    async def get(self, key: str) -> Kept:
        return self._kept.get(key, Kept())

    async def put(self, key: str, anchor: Anchor, version: int) -> bool:
        with self._changing:
            fits = self._kept.get(key, Kept()).version == version
            if fits:
                self._kept[key] = Kept(anchor, version + 1)
            return fits


class AnchorNotes:
    """Anchors by key, kept beside the history where that is possible.

    A session that cannot be written to for a moment must not keep a view from being made: then the anchor is
    not kept, and found again next time.
    """

    def __init__(self, session: Session) -> None:
        self._notes: Noted | _InProcess = with_ability(session, Noted) or _InProcess()

    async def get(self, key: str) -> Kept:
        """The anchor that is kept, if any, and its version."""
        if isinstance(self._notes, _InProcess):
            return await self._notes.get(key)
        note = await self._notes.get_note(key)
        return Kept() if note is None else Kept(Anchor.from_note(note.data), note.version)

    async def put(self, key: str, anchor: Anchor, version: int) -> Kept | None:
        """Keep an anchor in the place of this version; `None` if another came in between."""
        try:
            fits = await self._set(key, anchor, version)
        except (RecollectError, OSError) as error:
            logger.warning("how far a history was cut could not be kept (%s)", type(error).__name__)
            return Kept(anchor, version)
        return Kept(anchor, version + 1) if fits else None

    async def _set(self, key: str, anchor: Anchor, version: int) -> bool:
        if isinstance(self._notes, _InProcess):
            return await self._notes.put(key, anchor, version)
        return await self._notes.set_note(key, anchor.to_note(), version)
