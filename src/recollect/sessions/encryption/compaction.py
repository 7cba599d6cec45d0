"""The Agents SDK's compaction together with encryption, in both orders of wrapping.

Outer compaction: `CompactionSession(EncryptedSession(…))` calls hooks of the encrypted session. Inner
compaction: `EncryptedSession(CompactionSession(…))` forwards the Runner's calls, with functions that read and
replace items. Neither sends an expired item to a model, and neither removes an item that no key decrypts.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ...errors import MissingAbilityError
from ...items import Item
from ..protocol import Items, PositionedItem, Session, bypassed_override, own_method
from ..sdk_hooks import SDKCompaction, Snapshot
from ..wrappers import SessionWrapper, takes_context
from . import abilities
from .abilities import DelegatedMethod
from .reader import EVERYTHING, NO_KEY, NOT_ENCRYPTED, Reader

logger = logging.getLogger(__name__)


class CompactionHooks(SessionWrapper):
    """The methods that the SDK's compaction and Runner call on an encrypted session.

    The names are the SDK's.
    """

    _reader: Reader

    # --- outer compaction: hooks of a session that compaction wraps ---

    async def _atomic_replace_items(self, items: Items) -> bool:
        self._check_open()
        store = self._store()
        if store is not None:
            return await store._atomic_replace_items(items)
        if await self._find_undecrypted():  # the SDK would clear the session
            raise self._reader.wrong_key(
                "no key decrypts some of its items, and compaction would remove them"
            )
        return False

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Item], bool] | None = None
    ) -> Snapshot | None:
        self._check_open()
        store = self._store()
        return (
            None if store is None else await store._get_compaction_snapshot(limit, prune_prefix=prune_prefix)
        )

    async def _read_compaction_items(self, limit: int | None, *, wrapper: Any = None) -> tuple[Items, bool]:
        """Return the readable items, and whether they are all stored items and fewer than the limit."""
        if limit is None:
            context = {"wrapper": wrapper} if wrapper is not None and takes_context(self) else {}
            return await self.get_items(**context), False
        self._check_open()
        if bypassed_override(self, "read_before"):
            return [], False
        context = self._context(wrapper)
        result = await self._reader.read_readable(
            partial(self.wrapped.get_items, **context), limit, **context
        )
        items = result.readable()
        covers_all = len(items) < limit and not (result.omitted[NO_KEY] or result.omitted[NOT_ENCRYPTED])
        return (items, True) if covers_all else ([], False)

    # --- inner compaction: calls of the Runner to a session that compacts ---

    _get_items_with_generation = DelegatedMethod()
    _add_items_with_generation = DelegatedMethod()
    _get_deferred_compaction_response_id = DelegatedMethod()
    _clear_deferred_compaction = DelegatedMethod()

    @property
    def _ignore_ids_for_matching(self) -> bool:
        return bool(getattr(self.wrapped, "_ignore_ids_for_matching", False))

    @property
    def run_compaction(self) -> Callable[..., Awaitable[None]]:
        """Compact the readable items. Exists only if the wrapped session compacts."""
        run: Callable[..., Awaitable[None]] = self.wrapped.run_compaction  # type: ignore[attr-defined]
        return run if self._compacting() is None else self._run_compaction

    @property
    def _defer_compaction(self) -> Callable[..., Awaitable[None]]:
        defer: Callable[..., Awaitable[None]] = self.wrapped._defer_compaction  # type: ignore[attr-defined]
        return defer if self._compacting() is None else self._defer_encrypted_compaction

    async def _run_compaction(self, args: Any = None, *, wrapper: Any = None) -> None:
        self._check_open()
        is_automatic = getattr(wrapper, "_session_compaction_is_automatic", False)
        bypassed = self._overridden()
        if bypassed and is_automatic:  # an error would cost the caller of the Runner the reply of the model
            logger.warning("automatic compaction skipped: it would bypass %s()", bypassed)
            return
        if bypassed:
            raise MissingAbilityError(self, "compactable", ["run_compaction"], bypassed)
        # An automatic compaction replaces the history only if all of it is readable.
        undecrypted = [] if is_automatic else await self._find_undecrypted()
        compacting: Any = self._compacting()
        await compacting._run_compaction(
            args,
            wrapper=wrapper,
            read_items=partial(self._read_compaction_items, wrapper=wrapper),
            prepare_items=lambda items: [*undecrypted, *self._reader.encrypt_at_once(items)],
            read_snapshot=self._get_compaction_snapshot,
        )

    async def _defer_encrypted_compaction(
        self, response_id: str, store: bool | None = None, *, wrapper: Any = None
    ) -> None:
        self._check_open()
        read_items = partial(self._read_compaction_items, wrapper=wrapper)
        compacting: Any = self._compacting()
        await compacting._defer_compaction(response_id, store, read_items=read_items)

    # --- both ---

    def _compacting(self) -> Session | None:
        """Return the wrapped session if it is the SDK's compaction, else `None`."""
        run = own_method(self.wrapped, "_run_compaction")
        return self.wrapped if run and "read_items" in inspect.signature(run).parameters else None

    def _store(self) -> "_DecryptedHistory | None":
        """Return the decrypted history if its session can be rewritten atomically and read by position."""
        if self._overridden():
            return None
        compacting: Any = self._compacting()
        stored = self.wrapped if compacting is None else compacting.underlying_session
        able = own_method(stored, "transform_items") and own_method(stored, "read_before")
        return _DecryptedHistory(self._reader.over(stored)) if able else None

    def _overridden(self) -> str | None:
        """Return the contract method that a subclass overrides and that atomic compaction would bypass."""
        return bypassed_override(self, "transform_items") or bypassed_override(self, "read_before")

    async def _find_undecrypted(self) -> list[Item]:
        """Return the stored items that no key decrypts."""
        stored = await self.wrapped.get_items(EVERYTHING)
        decrypted = await asyncio.to_thread(self._reader.decrypt_all, stored)
        pairs = zip(decrypted.stored, decrypted.ciphers, strict=True)
        return [item for item, cipher in pairs if cipher is None]


class _DecryptedHistory(SDKCompaction):
    """The stored history with items in place of envelopes, for atomic compaction."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        await abilities.transform_items(self._reader, change)

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        return await abilities.read_before(self._reader, position, limit)
