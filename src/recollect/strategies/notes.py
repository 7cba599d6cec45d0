"""Where anchors are kept: as notes of the session, or in this process if it cannot keep any."""

import logging
import threading
from dataclasses import dataclass, field

from ..errors import RecollectError
from ..sessions.protocol import Noted, Session, with_ability
from .anchors import Anchor

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
