"""Sessions in Redis, on one server or on a cluster."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

from ...errors import DatabaseBusyError, StorageError
from ...items import Item, decode_item, encode_items
from ..protocol import Items, PositionedItem, SessionABC, SessionMetadata
from ..rewriting import rewrite
from ..sdk_compaction import SDKCompaction
from ..settings import check_limit
from . import lua
from .connections import Connections, connections_of, connections_to
from .keys import layout_of
from .metadata import decode_metadata, encode_metadata
from .reading import EVERYTHING, Window, read_window, report_corrupt
from .wire import Argument

_LONG_BATCH = 1000  # items: encoding more than these would hold up the event loop
_MOST_ARGUMENTS = 1_000_000  # of one command
_LONGEST_TTL = 10**10  # seconds
_REWRITING = 30.0  # seconds to try for, while others change the history


class RedisSession(SDKCompaction, SessionABC):
    """A session in Redis, on the keys of the Agents SDK.

    The object is a handle: sessions of the same client or URL share its connections. A client that was passed
    in is never closed. On a cluster the keys are named so that a session is in one slot, unlike the SDK's.

    With a `ttl`, the session is gone so many seconds after the last write. `metadata` is stored with the
    first items if the session has none yet.
    """

    def __init__(
        self,
        session_id: str,
        *,
        redis_client: Any,
        key_prefix: str = "agents:session",
        ttl: int | None = None,
        session_settings: Any = None,
        metadata: SessionMetadata | None = None,
    ) -> None:
        super().__init__(session_id, session_settings)
        self._closed = True  # until there is something to close
        self._ttl = _check_ttl(ttl)
        self._new_metadata = "" if metadata is None else encode_metadata(metadata)
        is_shared = isinstance(redis_client, Connections)
        self._connections: Connections = redis_client if is_shared else connections_of(redis_client)
        self._keys = layout_of(key_prefix, self._connections.is_cluster).keys_of(session_id)
        self._connections.acquire()
        self._closed = False

    @classmethod
    def from_url(
        cls, session_id: str, *, url: str, redis_kwargs: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Self:
        """A session at a URL: `redis://`, `rediss://`, `unix://`, or `redis+cluster://` for a cluster.

        Sessions of the same URL and options share their connections. `redis_kwargs` are options of the
        connections; `kwargs` are those of the session.
        """
        return cls(session_id, redis_client=connections_to(url, redis_kwargs), **kwargs)

    # --- the contract ---

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first; with a limit the newest of them."""
        limit = self._effective_limit(limit)
        if limit == 0:
            return []
        window = await self._look("newest", 0, limit)
        return window.items if limit is None else window.items[-limit:]

    async def add_items(self, items: Items) -> None:
        """Append a batch, whole or not at all, and make the session if it is not there."""
        self._check_open()
        encoded = await _encoded(items)
        if encoded:
            await self._add(encoded, "")

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none. Corrupt ones on the way go too."""
        while popped := await self._write(lua.POP, self._keys[:2]):
            entry, index = popped
            item = decode_item(entry)
            if item is not None:
                return item
            report_corrupt(index)
        return None

    async def clear_session(self) -> None:
        """Remove all items, and the session with its metadata."""
        self._check_open()
        await self._run(lua.CLEAR, self._keys[:4])

    async def close(self) -> None:
        """Let go of the connections. Those of a URL are closed soon after its last session."""
        self.release()

    async def aclose(self) -> None:
        """As `close`."""
        self.release()

    def release(self) -> None:
        """As `close`, from where nothing can be awaited."""
        if not self._closed:
            self._closed = True
            self._connections.release()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.release()

    async def ping(self) -> bool:
        """Whether the server answers."""
        self._check_open()
        try:
            wire = await self._connections.wire()
            await wire.read(self._keys.session, "EXISTS", self._keys.session)
        except StorageError:
            return False
        return True

    # --- abilities ---

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history by what the pure function `change` makes of it; nobody comes in between.

        It is called again where somebody did.
        """
        deadline = time.monotonic() + _REWRITING
        while not await self._try_to_transform(change):
            if time.monotonic() > deadline:
                raise DatabaseBusyError(
                    f"others changed the session for {_REWRITING:g} s; nothing was written"
                )
            await asyncio.sleep(random.uniform(0, 0.01))

    async def replace_items(self, items: Items) -> None:
        """Replace the history by these items."""
        self._check_open()
        await _encoded(items)  # a bad one is refused here, before anything else is done
        await self.transform_items(lambda _: items)

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """The first `limit` items after a position (0: from the start), oldest first."""
        self._check_open()
        check_limit(limit)
        if limit == 0:
            return []
        return (await self._look("after", position, limit)).positioned()[:limit]

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """The last `limit` items before a position (`None`: from the end), oldest first."""
        self._check_open()
        check_limit(limit)
        if limit == 0:
            return []
        window = "newest" if position is None else "before"
        return (await self._look(window, position or 0, limit)).positioned()[-limit:]

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one of this id was appended within the last day."""
        self._check_open()
        return await self._add(await _encoded(items), f"id:{batch_id}")

    async def get_metadata(self) -> SessionMetadata:
        """The metadata; empty where none was set."""
        self._check_open()
        wire = await self._connections.wire()
        return decode_metadata(
            await wire.read(self._keys.session, "HGET", self._keys.session, "recollect:metadata")
        )

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata, and make the session if it is not there."""
        self._check_open()
        await self._write(lua.DESCRIBE, self._keys[:2], encode_metadata(metadata))

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease; `False` while another owner's runs."""
        self._check_open()
        milliseconds = max(1, int(seconds * 1000))
        return bool(await self._run(lua.TAKE_LEASE, [self._keys.lease], owner, milliseconds))

    async def drop_lease(self, owner: str) -> None:
        """Give the lease up, if it is this owner's."""
        self._check_open()
        await self._run(lua.DROP_LEASE, [self._keys.lease], owner)

    # --- how it is done ---

    async def _add(self, encoded: Sequence[str], batch: str) -> bool:
        keys = (self._keys.session, self._keys.messages, self._keys.batches)
        return bool(await self._write(lua.ADD, keys, self._new_metadata, batch, *encoded))

    async def _look(self, window: str, argument: int, limit: int | None) -> Window:
        """A window with at least `limit` items: a wider look is taken where corrupt entries stand between."""
        width = EVERYTHING if limit is None else limit
        while True:
            found = await read_window(self._read, window, argument, width)
            if limit is None or len(found.items) >= limit or found.length < width:
                return found
            width *= 2

    async def _try_to_transform(self, change: Callable[[list[Item]], list[Item]]) -> bool:
        """Rewrite from the first item that differs, unless the session changed since it was read."""
        self._check_open()
        state = await self._run(lua.STATE, self._keys[:2], writes=False)
        before = await read_window(self._read, "newest")
        plan = partial(rewrite, before.items, change)
        is_long = len(before.items) > _LONG_BATCH
        same, rest = await asyncio.to_thread(plan) if is_long else plan()
        if same == len(before.items) and not rest:
            return True
        kept = before.indexes[same - 1] + 1 if same else 0
        return bool(await self._write(lua.REWRITE, self._keys[:2], state, kept, *rest))

    async def _read(self, *arguments: Argument) -> Any:
        return await self._run(lua.READ, self._keys[:2], *arguments, writes=False)

    async def _write(self, script: lua.Script, keys: Sequence[bytes], *arguments: Argument) -> Any:
        self._check_open()
        if len(arguments) > _MOST_ARGUMENTS:
            raise ValueError(f"too many items: Redis takes no more than {_MOST_ARGUMENTS:,} at once")
        return await self._run(script, keys, self.session_id, self._ttl, *arguments)

    async def _run(
        self, script: lua.Script, keys: Sequence[bytes], *arguments: Argument, writes: bool = True
    ) -> Any:
        wire = await self._connections.wire()
        return await wire.run(script, keys, *arguments, writes=writes)


async def _encoded(items: Items) -> list[str]:
    if isinstance(items, list) and len(items) > _LONG_BATCH:
        return await asyncio.to_thread(encode_items, items)
    return encode_items(items)


def _check_ttl(ttl: int | None) -> str:
    """The time to live as scripts take it."""
    if ttl is None:
        return ""
    if isinstance(ttl, bool) or not isinstance(ttl, int):
        raise TypeError(f"ttl must be whole seconds or None, not {ttl!r}")
    if not 1 <= ttl <= _LONGEST_TTL:
        raise ValueError(f"ttl must be at least 1 second and at most {_LONGEST_TTL:,}, and it is {ttl}")
    return str(ttl)
