"""Read and write encrypted items: which items are readable, which are left out, and when they expire.

Decrypting needs the interpreter lock: on another thread it takes longer, and blocks the event loop for as
long as Python lets a thread run. It is done in small blocks instead, and the event loop runs other tasks
every two milliseconds. Only a block of very large items goes to a thread.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from time import perf_counter
from typing import Any

from ...errors import InvalidItemError, ScanLimitError, WrongKeyError
from ...items import Item, encode_items
from ...sql.garbage import pause_garbage_collection
from ..protocol import Items, Session
from .ciphers import STAMP_BYTES, stamp_of
from .vault import BLOCK, SHUT, Opened, Vault, is_envelope

_ANY_TIME = bytes(STAMP_BYTES)


def check_ttl(ttl: float | None) -> float | None:
    """The time to live if it makes sense: more than 0 seconds, or `None` for ever."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < math.inf:
        raise ValueError(f"ttl must be more than 0 seconds, or None for ever, and it is {ttl!r}")
    return ttl


def now() -> bytes:
    """The time, as tokens hold it."""
    return stamp_of(time.time())


def earliest(ttl: float | None) -> bytes:
    """The stamp from which on an item may be read. One from the future, by a clock that went back, may."""
    if ttl is None:
        return _ANY_TIME
    return stamp_of(max(0, math.ceil(int(time.time()) - ttl)))


logger = logging.getLogger(__name__)

_LARGE = 400_000  # characters in a block
_PATIENCE = 0.002  # seconds
_payload_of = itemgetter("payload")
EVERYTHING = 2**31 - 1  # items: a limit that is none, also where settings give one

EXPIRED = "older than the time to live"
LOCKED = "not opened by any key"
PLAIN = "not encrypted"


@dataclass
class Readout:
    """What was read: an entry for each stored item, `None` for those that are left out, and why they are."""

    items: list[Item | None] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    any_opened: bool = False

    def add(self, opened: Opened, since: bytes) -> None:
        """Add a block, of which items encrypted before a time are left out."""
        self.any_opened = self.any_opened or any(opened.ciphers)
        if min(opened.stamps, default=since) >= since and all(opened.items):
            self.items += opened.items
            return
        reasons = [why_left_out(opened, number, since) for number in range(len(opened.stored))]
        pairs = zip(opened.items, reasons, strict=True)
        self.items += [item if reason is None else None for item, reason in pairs]
        self.left_out.update(reason for reason in reasons if reason is not None)

    def readable(self) -> Items:
        """The items that are there."""
        return [item for item in self.items if item is not None] if self.left_out else self.items


def why_left_out(opened: Opened, number: int, since: bytes) -> str | None:
    """Why a stored item is not to be read; `None` if it is."""
    if opened.stamps[number] == SHUT:
        return LOCKED if is_envelope(opened.stored[number]) else PLAIN
    if opened.stamps[number] < since:
        return EXPIRED
    return LOCKED if opened.items[number] is None else None


class Reader:
    """Reads and writes the encrypted items of one session."""

    def __init__(
        self,
        wrapped: Session,
        vault: Vault,
        session_id: str,
        ttl: float | None,
        max_scan_items: int | None = None,
    ) -> None:
        self.wrapped = wrapped
        self.vault = vault
        self.ttl = ttl
        self.max_scan_items = max_scan_items
        self._session_id = session_id
        self._reported: Counter[str] = Counter()

    def over(self, wrapped: Session) -> "Reader":
        """The same keys over another session."""
        return Reader(wrapped, self.vault, self._session_id, self.ttl, self.max_scan_items)

    async def seal(self, items: Items) -> list[Item]:
        """Envelopes for items. One that cannot be stored exactly is refused."""
        if not isinstance(items, list | tuple) or len(items) <= BLOCK:
            return await self._seal_block(encode_items(items))
        envelopes: list[Item] = []
        patience = _Patience()
        for start in range(0, len(items), BLOCK):
            envelopes += await self._seal_block(_encoded_from(start, items[start : start + BLOCK]))
            await patience.rest()
        return envelopes

    def seal_at_once(self, items: Items) -> list[Item]:
        """As `seal`, within a call that may not wait."""
        texts = encode_items(items)
        return self.vault.seal([text.encode() for text in texts], [now()] * len(texts))

    async def _seal_block(self, texts: list[str]) -> list[Item]:
        plaintexts, stamps = [text.encode() for text in texts], [now()] * len(texts)
        if sum(map(len, plaintexts)) > _LARGE:
            return await asyncio.to_thread(self.vault.seal, plaintexts, stamps)
        return self.vault.seal(plaintexts, stamps)

    async def open(self, stored: Items) -> Readout:
        """What may be read of stored items."""
        since = earliest(self.ttl)
        readout = Readout()
        if len(stored) <= BLOCK and not _is_large(stored):
            readout.add(self.vault.open(stored), since)
            return readout
        # Envelopes are let go of block by block: to free very many of them at once would take long, too.
        blocks = [stored[start : start + BLOCK] for start in range(0, len(stored), BLOCK)][::-1]
        del stored
        patience = _Patience()
        with pause_garbage_collection():
            while blocks:
                readout.add(await self._open_block(blocks.pop()), since)
                await patience.rest()
        return readout

    async def _open_block(self, block: list[Item]) -> Opened:
        return await asyncio.to_thread(self.vault.open, block) if _is_large(block) else self.vault.open(block)

    async def look(
        self, read: Callable[[int | None], Awaitable[Items]], limit: int | None, **context: Any
    ) -> Readout:
        """At least `limit` readable items: reads more where others stand between.

        `context` goes to the wrapped session with every further read.
        """
        unread = self.max_scan_items
        width = limit if unread is None else min(unread, EVERYTHING if limit is None else limit)
        while True:
            readout = await self.open(await read(width))
            count = len(readout.items)
            found = count - readout.left_out.total()
            if width is None or count < width or (limit is not None and found >= limit):
                await self.check(readout, **context)
                return readout
            unread = None if unread is None else unread - count
            width = self._wider(width, unread)

    def _wider(self, width: int, unread: int | None) -> int:
        wider = width * 2 if unread is None else min(width * 2, unread)
        if wider <= width:
            raise ScanLimitError(self._session_id, self.max_scan_items)
        return wider

    async def check_key(self, **context: Any) -> None:
        """Raise `WrongKeyError` where no key opens anything."""
        await self.check(await self.open(await self.wrapped.get_items(1, **context)), **context)

    async def check(self, readout: Readout, **context: Any) -> None:
        """Log what was left out. Where no key opens anything at all, raise `WrongKeyError`."""
        if readout.left_out[LOCKED] and not readout.any_opened:
            most = EVERYTHING if self.max_scan_items is None else self.max_scan_items
            everything = await self.open(await self.wrapped.get_items(most, **context))
            if not everything.any_opened:
                raise WrongKeyError(self._session_id, "no key opens any of its items")
        self._report(readout.left_out)

    def open_all(self, stored: list[Item]) -> Opened:
        """As `open`, within a call that may not wait, and with what has expired."""
        with pause_garbage_collection():
            opened = self.vault.open(stored)
        if not any(opened.ciphers) and any(map(is_envelope, stored)):
            raise WrongKeyError(self._session_id, "no key opens any of its items")
        return opened

    def wrong_key(self, reason: str) -> WrongKeyError:
        """The error of this session for a reason."""
        return WrongKeyError(self._session_id, reason)

    def _report(self, left_out: Counter[str]) -> None:
        """Log how many are left out, if they are more than before; expired ones only the first time."""
        for reason, count in left_out.items():
            known = self._reported[reason]
            if count > known and not (reason == EXPIRED and known):
                self._reported[reason] = count
                logger.warning("session %r: %d items left out, %s", self._session_id, count, reason)


def _encoded_from(start: int, items: Sequence[Item]) -> list[str]:
    """The texts of some items of a batch; one that is refused is named by its number in the batch."""
    try:
        return encode_items(items)
    except InvalidItemError as error:
        raise InvalidItemError(error.reason, start + (error.index or 0)) from error


class _Patience:
    """Lets others have their turn when something has taken long enough."""

    def __init__(self) -> None:
        self._until = perf_counter() + _PATIENCE

    async def rest(self) -> None:
        """Wait for the others if it is time to."""
        if perf_counter() > self._until:
            await asyncio.sleep(0)
            self._until = perf_counter() + _PATIENCE


def _is_large(stored: Sequence[Item]) -> bool:
    """Whether to decrypt these would take long, few as they are."""
    try:
        return sum(map(len, map(_payload_of, stored))) > _LARGE
    except (KeyError, TypeError):  # not all are envelopes
        payloads = (each.get("payload") for each in stored)
        return sum(len(payload) for payload in payloads if isinstance(payload, str)) > _LARGE
