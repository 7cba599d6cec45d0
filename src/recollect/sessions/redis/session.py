"""Sessions in Redis, on one server or on a cluster."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ...errors import StorageError
from ...items import Item, decode_item
from ...text_checks import check_text
from ..protocol import Items, Note, PositionedItem, SessionABC, SessionMetadata
from ..sdk_hooks import ItemTexts, SDKCompaction, encode_batch
from ..settings import check_limit
from . import lua
from .changes import pop_checked, pop_entry, revise_in_place, transform
from .connections import Connections, connections_of, connections_to
from .handle import Handle
from .layout import decode_metadata, decode_note, encode_metadata, encode_note, field_of
from .windows import report_corrupt

_LONGEST_TTL = 10**10  # seconds


class RedisSession(ItemTexts, SDKCompaction, SessionABC):
    """A session in Redis, on the keys of the Agents SDK.

    The object is a handle: sessions of the same client or URL share connections. A client that was passed in
    is never closed. On a cluster, the keys differ from the SDK's, so that each session is in one slot.

    With a `ttl`, the session expires so many seconds after the last write. `metadata` is stored with the
    first items if the session has none yet.
    """

    def __init__(
        self,
        session_id: str,
        *misplaced: object,
        redis_client: Any = None,
        key_prefix: str = "agents:session",
        ttl: int | None = None,
        session_settings: Any = None,
        metadata: SessionMetadata | None = None,
    ) -> None:
        if misplaced or redis_client is None or isinstance(redis_client, str | bytes):
            raise TypeError(
                "redis_client must be a redis.asyncio.Redis or RedisCluster;"
                " for a URL use RedisSession.from_url(session_id, url=…)"
            )
        super().__init__(session_id, session_settings)
        self._new_metadata = "" if metadata is None else encode_metadata(metadata)
        is_shared = isinstance(redis_client, Connections)
        connections: Connections = redis_client if is_shared else connections_of(redis_client)
        self._handle = Handle(session_id, connections, key_prefix, _check_ttl(ttl))

    @classmethod
    def from_url(
        cls, session_id: str, *, url: str, redis_kwargs: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Self:
        """Open a session at a URL: `redis://`, `rediss://`, `unix://`, or `redis+cluster://` for a cluster.

        Sessions with the same URL and options share their connections. `redis_kwargs` are options of the
        connections, `kwargs` those of the session.
        """
        return cls(session_id, redis_client=connections_to(url, redis_kwargs), **kwargs)

    # --- the contract ---

    async def get_items(self, limit: int | None = None) -> Items:
        """Return all items, oldest first, or with a limit only the newest ones."""
        limit = self._effective_limit(limit)
        if limit == 0:
            return []
        if self._has_own_texts:
            return await self._read_own_texts(limit)
        window = await self._handle.look("newest", limit=limit)
        return window.items if limit is None else window.items[-limit:]

    async def add_items(self, items: Items) -> None:
        """Append a batch: all of its items or none. Creates the session if it does not exist."""
        self._check_open()
        encoded = await self._texts_of(items)
        if encoded:
            await self._add(encoded, "")

    async def pop_item(self) -> Any:
        """Remove and return the newest item, or return `None` if there is none.

        Corrupt entries after it are removed too.
        """
        if self._has_own_texts:
            return await pop_entry(self._handle, self._item_of_entry)
        while popped := await self._handle.write(lua.POP, self._handle.keys[:2]):
            entry, index = popped
            item = decode_item(entry)
            if item is not None:
                return item
            report_corrupt(index)
        return None

    async def clear_session(self) -> None:
        """Remove all items, and the session with its metadata and notes.

        A lease stays until it is released or expires: a run that clears its session still holds it.
        """
        await self._handle.run(lua.CLEAR, self._handle.keys[:4])

    async def close(self) -> None:
        """Release the connections. Those of a URL are closed soon after its last session."""
        self.release()

    async def aclose(self) -> None:
        """As `close`."""
        self.release()

    def release(self) -> None:
        """As `close`, for callers that cannot await."""
        self._closed = True
        self._handle.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):  # missing if the constructor failed
            self._handle.close()

    async def ping(self) -> bool:
        """Whether the server responds."""
        try:
            wire, key = self._handle.wire(), self._handle.keys.session
            await wire.read(key, "EXISTS", key)
        except StorageError:
            return False
        return True

    # --- abilities ---

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history by the result of the pure function `change`, in one atomic step.

        `change` is called again if another writer changed the session meanwhile.
        """
        self._refuse_own_texts("transform_items")
        await transform(self._handle, change)

    async def replace_items(self, items: Items) -> None:
        """Replace the history by these items."""
        self._check_open()
        await encode_batch(items)  # raises for an invalid item before anything is changed
        await self.transform_items(lambda _: items)

    async def revise_items(self, change: Callable[[list[Item]], list[Item | None]]) -> None:
        """Change stored items in place. `None` removes an item. Positions and corrupt entries stay.

        `change` is called again if another writer changed the session meanwhile.
        """
        self._refuse_own_texts("revise_items")
        await revise_in_place(self._handle, change)

    async def pop_checked(self, accept: Callable[[Item], bool]) -> Any:
        """Remove the newest item that `accept` accepts, and all items after it. If it raises, remove nothing.

        `accept` is called again if another writer changed the session meanwhile.
        """
        self._refuse_own_texts("pop_checked")
        return await pop_checked(self._handle, accept)

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """Return the first `limit` items after a position (0: from the start), oldest first."""
        self._refuse_own_texts("read_after")
        self._check_open()
        check_limit(limit)
        if limit == 0:
            return []
        return (await self._handle.look("after", position, limit)).positioned()[:limit]

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """Return the last `limit` items before a position (`None`: from the end), oldest first."""
        self._refuse_own_texts("read_before")
        self._check_open()
        check_limit(limit)
        if limit == 0:
            return []
        window = "newest" if position is None else "before"
        return (await self._handle.look(window, position or 0, limit)).positioned()[-limit:]

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one with this id was appended within the last day."""
        self._check_open()
        check_text("batch_id", batch_id)
        return await self._add(await self._texts_of(items), f"id:{batch_id}")

    async def get_metadata(self) -> SessionMetadata:
        """Return the metadata, empty if none was set."""
        return decode_metadata(await self._handle.get_field("recollect:metadata"))

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata, and create the session if it does not exist."""
        self._check_open()
        await self._handle.write(lua.DESCRIBE, self._handle.keys[:2], encode_metadata(metadata))

    async def get_note(self, key: str) -> Note | None:
        """Return the note with this key, or `None`."""
        self._refuse_own_texts("get_note")
        return decode_note(await self._handle.get_field(field_of(key)))

    async def set_note(self, key: str, data: Mapping[str, Any], version: int) -> bool:
        """Set a note if it still has this version (0: it does not exist yet), else return `False`."""
        self._refuse_own_texts("set_note")
        self._check_open()
        arguments = (field_of(key), version, version + 1, encode_note(data))
        return bool(await self._handle.write(lua.SET_NOTE, self._handle.keys[:2], *arguments))

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease. Return `False` while another owner holds it."""
        self._check_open()
        lasting = max(1, int(seconds * 1000))  # milliseconds
        keys = [self._handle.keys.lease]
        return bool(await self._handle.run(lua.TAKE_LEASE, keys, check_text("owner", owner), lasting))

    async def drop_lease(self, owner: str) -> None:
        """Release the lease if this owner holds it."""
        self._check_open()
        await self._handle.run(lua.DROP_LEASE, [self._handle.keys.lease], check_text("owner", owner))

    async def _read_own_texts(self, limit: int | None) -> Items:
        """Read the newest items through the methods of a subclass that decode their texts."""
        width = limit
        while True:
            entries = await self._handle.newest_entries(width)
            places = range(-len(entries), 0)
            pairs = zip(entries, places, strict=True)
            items = [item for pair in pairs if (item := await self._item_of_entry(*pair)) is not None]
            if limit is None or width is None or len(items) >= limit or len(entries) < width:
                return items if limit is None else items[-limit:]
            width *= 2

    async def _item_of_entry(self, entry: bytes, index: int) -> Item | None:
        item = await self._item_of(entry)
        if item is None:
            report_corrupt(index)
        return item

    async def _add(self, encoded: Sequence[str], batch: str) -> bool:
        keys = self._handle.keys
        scripted = (keys.session, keys.messages, keys.batches)
        return bool(await self._handle.write(lua.ADD, scripted, self._new_metadata, batch, *encoded))


def _check_ttl(ttl: int | None) -> str:
    """Return a valid time to live as the argument of a script."""
    if ttl is None:
        return ""
    if isinstance(ttl, bool) or not isinstance(ttl, int):
        raise TypeError(f"ttl must be whole seconds or None, not {ttl!r}")
    if not 1 <= ttl <= _LONGEST_TTL:
        raise ValueError(f"ttl must be at least 1 second and at most {_LONGEST_TTL:,}, not {ttl}")
    return str(ttl)
