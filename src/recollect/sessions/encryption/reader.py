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
from .vault import BLOCK, UNDECRYPTED, DecryptedItems, Vault, is_envelope

_ANY_TIME = bytes(STAMP_BYTES)


def check_ttl(ttl: float | None) -> float | None:
    """Return a valid time to live: more than 0 seconds, or `None` for no expiry."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < math.inf:
        raise ValueError(f"ttl must be more than 0 seconds, or None for no expiry, not {ttl!r}")
    return ttl


def now() -> bytes:
    """The current time as the stamp of a token."""
    return stamp_of(time.time())


def readable_since(ttl: float | None) -> bytes:
    """The oldest stamp that has not expired.

    A stamp in the future, from a clock that went back, is readable.
    """
    if ttl is None:
        return _ANY_TIME
    return stamp_of(max(0, math.ceil(int(time.time()) - ttl)))


logger = logging.getLogger(__name__)

_LARGE = 400_000  # characters in a block
_LONGEST_BLOCKING = 0.002  # seconds without running other tasks of the event loop
_payload_of = itemgetter("payload")
EVERYTHING = 2**31 - 1  # items: no limit, and it overrides a limit in the settings

EXPIRED = "older than the time to live"
NO_KEY = "not decrypted by any key"
NOT_ENCRYPTED = "not encrypted"


@dataclass
class ReadResult:
    """The result of a read: one entry per stored item, `None` if it is omitted, and the reasons."""

    items: list[Item | None] = field(default_factory=list)
    omitted: Counter[str] = field(default_factory=Counter)
    any_decrypted: bool = False

    def add(self, decrypted: DecryptedItems, since: bytes) -> None:
        """Add a block. Items encrypted before `since` are omitted."""
        self.any_decrypted = self.any_decrypted or any(decrypted.ciphers)
        if min(decrypted.stamps, default=since) >= since and all(decrypted.items):
            self.items += decrypted.items
            return
        reasons = [omission_reason(decrypted, number, since) for number in range(len(decrypted.stored))]
        pairs = zip(decrypted.items, reasons, strict=True)
        self.items += [item if reason is None else None for item, reason in pairs]
        self.omitted.update(reason for reason in reasons if reason is not None)

    def readable(self) -> Items:
        """Return the items that are not omitted."""
        return [item for item in self.items if item is not None] if self.omitted else self.items


def omission_reason(decrypted: DecryptedItems, number: int, since: bytes) -> str | None:
    """Return why a stored item is not readable, or `None` if it is readable."""
    if decrypted.stamps[number] == UNDECRYPTED:
        return NO_KEY if is_envelope(decrypted.stored[number]) else NOT_ENCRYPTED
    if decrypted.stamps[number] < since:
        return EXPIRED
    return NO_KEY if decrypted.items[number] is None else None


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
        """Return a reader with the same keys over another session."""
        return Reader(wrapped, self.vault, self._session_id, self.ttl, self.max_scan_items)

    async def encrypt(self, items: Items) -> list[Item]:
        """Encrypt items into envelopes.

        Raise `InvalidItemError` for an item that cannot be stored exactly.
        """
        if not isinstance(items, list | tuple) or len(items) <= BLOCK:
            return await self._encrypt_block(encode_items(items))
        envelopes: list[Item] = []
        pause = _Pause()
        for start in range(0, len(items), BLOCK):
            envelopes += await self._encrypt_block(_encode_from(start, items[start : start + BLOCK]))
            await pause.if_due()
        return envelopes

    def encrypt_at_once(self, items: Items) -> list[Item]:
        """As `encrypt`, for callers that cannot await."""
        texts = encode_items(items)
        return self.vault.encrypt([text.encode() for text in texts], [now()] * len(texts))

    async def _encrypt_block(self, texts: list[str]) -> list[Item]:
        plaintexts, stamps = [text.encode() for text in texts], [now()] * len(texts)
        if sum(map(len, plaintexts)) > _LARGE:
            return await asyncio.to_thread(self.vault.encrypt, plaintexts, stamps)
        return self.vault.encrypt(plaintexts, stamps)

    async def decrypt(self, stored: Items) -> ReadResult:
        """Decrypt stored items, and omit the ones that are not readable."""
        since = readable_since(self.ttl)
        result = ReadResult()
        if len(stored) <= BLOCK and not _is_large(stored):
            result.add(self.vault.decrypt(stored), since)
            return result
        # Envelopes are freed block by block: freeing very many at once would block the event loop as well.
        blocks = [stored[start : start + BLOCK] for start in range(0, len(stored), BLOCK)][::-1]
        del stored
        pause = _Pause()
        with pause_garbage_collection():
            while blocks:
                result.add(await self._decrypt_block(blocks.pop()), since)
                await pause.if_due()
        return result

    async def _decrypt_block(self, block: list[Item]) -> DecryptedItems:
        return (
            await asyncio.to_thread(self.vault.decrypt, block)
            if _is_large(block)
            else self.vault.decrypt(block)
        )

    async def read_readable(
        self, read: Callable[[int | None], Awaitable[Items]], limit: int | None, **context: Any
    ) -> ReadResult:
        """Read until there are at least `limit` readable items, widening the read past unreadable ones.

        `context` is passed to the wrapped session with every further read. Raises `ScanLimitError` if the
        read would exceed `max_scan_items`.
        """
        unread = self.max_scan_items
        width = limit if unread is None else min(unread, EVERYTHING if limit is None else limit)
        while True:
            result = await self.decrypt(await read(width))
            count = len(result.items)
            found = count - result.omitted.total()
            if width is None or count < width or (limit is not None and found >= limit):
                await self.check(result, **context)
                return result
            unread = None if unread is None else unread - count
            width = self._wider(width, unread)

    def _wider(self, width: int, unread: int | None) -> int:
        wider = width * 2 if unread is None else min(width * 2, unread)
        if wider <= width:
            raise ScanLimitError(self._session_id, self.max_scan_items)
        return wider

    async def check_key(self, **context: Any) -> None:
        """Raise `WrongKeyError` if no key decrypts any item."""
        await self.check(await self.decrypt(await self.wrapped.get_items(1, **context)), **context)

    async def check(self, result: ReadResult, **context: Any) -> None:
        """Log how many items were omitted.

        Raise `WrongKeyError` if no key decrypts any item of the session.
        """
        if result.omitted[NO_KEY] and not result.any_decrypted:
            most = EVERYTHING if self.max_scan_items is None else self.max_scan_items
            everything = await self.decrypt(await self.wrapped.get_items(most, **context))
            if not everything.any_decrypted:
                raise WrongKeyError(self._session_id, "no key decrypts any of its items")
        self._report(result.omitted)

    def decrypt_all(self, stored: list[Item]) -> DecryptedItems:
        """As `decrypt`, for callers that cannot await, and including expired items."""
        with pause_garbage_collection():
            decrypted = self.vault.decrypt(stored)
        if not any(decrypted.ciphers) and any(map(is_envelope, stored)):
            raise WrongKeyError(self._session_id, "no key decrypts any of its items")
        return decrypted

    def wrong_key(self, reason: str) -> WrongKeyError:
        """Return the `WrongKeyError` of this session for a reason."""
        return WrongKeyError(self._session_id, reason)

    def _report(self, omitted: Counter[str]) -> None:
        """Log how many items are omitted if there are more than before. Expired items are logged once."""
        for reason, count in omitted.items():
            known = self._reported[reason]
            if count > known and not (reason == EXPIRED and known):
                self._reported[reason] = count
                logger.warning("session %r: %d items omitted, %s", self._session_id, count, reason)


def _encode_from(start: int, items: Sequence[Item]) -> list[str]:
    """Encode some items of a batch. An error names the index of the item in the whole batch."""
    try:
        return encode_items(items)
    except InvalidItemError as error:
        raise InvalidItemError(error.reason, start + (error.index or 0)) from error


class _Pause:
    """Lets other tasks of the event loop run every few milliseconds."""

    def __init__(self) -> None:
        self._until = perf_counter() + _LONGEST_BLOCKING

    async def if_due(self) -> None:
        """Let other tasks run if the time is over."""
        if perf_counter() > self._until:
            await asyncio.sleep(0)
            self._until = perf_counter() + _LONGEST_BLOCKING


def _is_large(stored: Sequence[Item]) -> bool:
    """Whether decrypting these items would take long, although they are few."""
    try:
        return sum(map(len, map(_payload_of, stored))) > _LARGE
    except (KeyError, TypeError):  # not all are envelopes
        payloads = (each.get("payload") for each in stored)
        return sum(len(payload) for payload in payloads if isinstance(payload, str)) > _LARGE
