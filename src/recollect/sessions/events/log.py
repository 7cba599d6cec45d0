"""The event log of conversations, in SQLite or PostgreSQL."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from ...ids import new_hex
from ...items import Item
from ...sql.columns import check_count, check_id, check_label, check_time
from ...sql.database import SQLStore
from ...sql.scripts import Row, Script, Statement, run_all
from ..protocol import Items, Session
from ..sdk_hooks import encode_batch
from ..settings import check_limit
from . import queries
from .event import ConversationEvent, Origin, events_of, has_foreign_outputs, numbered
from .projection import Difference, ItemPosition, Reading, compare, read_session, tail_of
from .schema import EventSchema

T = TypeVar("T")

_EVERYTHING = 2**62  # rows: no limit at all
_LONG = 1000  # items: more than these are processed in a thread, to keep the event loop free
_CALLS_BACK = 200  # events that are searched for the call of an output
_LONGEST_WAIT = 0.01  # seconds until a retry after another writer changed the log


class EventHead(NamedTuple):
    """The stored head of a conversation: its state without the events."""

    stamp: str | None = None
    next_sequence: int = 0
    tail: tuple[ItemPosition, ...] = ()
    """The places of the last events in the session."""

    @property
    def last_position(self) -> int:
        """The position of the last event in the session; 0 if there is none."""
        return (self.tail[-1].position or 0) if self.tail else 0


class _Change(NamedTuple):
    """A change to a conversation. It is applied only if the head has not changed since it was read."""

    head: EventHead
    events: list[ConversationEvent]
    moved: dict[int, int]
    tail: tuple[ItemPosition, ...]


class EventLog(SQLStore):
    """All events of conversations in order. Rewriting or clearing a session does not change its events.

    Opens a path, `sqlite:///path`, `:memory:`, or the URL of a PostgreSQL database. Sequence numbers start at
    0 in each conversation and have no gaps, also if several processes append at once.

    Events are stored as plain text. Projecting an encrypted session stores its contents unencrypted: do it
    only where that is allowed.
    """

    schema = EventSchema()

    async def prepare(self) -> None:
        """Create the tables if they are missing, for callers that add events in transactions of their own."""
        await self._prepared()

    async def append(
        self,
        conversation_id: str,
        items: Items,
        *,
        response_id: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        created_at: datetime | None = None,
        positions: Sequence[int] | None = None,
    ) -> list[ConversationEvent]:
        """Append an event for each item, all or none of them, and return the events.

        Appending the same items twice stores them twice. `project` appends only new items.
        """
        check_id("conversation_id", conversation_id)
        origin = _origin(response_id, agent, model, created_at)
        await encode_batch(items)  # raises for an invalid item before anything is stored
        places = _checked_positions(positions, items)
        if not items:
            return []
        events = await self._events(conversation_id, items, places, origin)
        return numbered(events, await self._write(partial(_append, conversation_id, events)))

    async def project(
        self,
        session: Session,
        conversation_id: str | None = None,
        *,
        response_id: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        created_at: datetime | None = None,
    ) -> list[ConversationEvent]:
        """Append the items of a session that the log does not have, and return their events. Idempotent.

        `conversation_id` is by default the id of the session. If the session has positions, only new items
        are read. A session that was rewritten, or has no positions, is read completely and compared, so that
        no item is logged twice.
        """
        known_as = check_id(
            "conversation_id", session.session_id if conversation_id is None else conversation_id
        )
        origin = _origin(response_id, agent, model, created_at)
        while True:
            added = await self._project_once(session, known_as, origin)
            if added is not None:
                return added
            await asyncio.sleep(random.uniform(0, _LONGEST_WAIT))

    async def read(
        self, conversation_id: str, after: int | None = None, limit: int | None = 100
    ) -> list[ConversationEvent]:
        """Return the first `limit` events after a sequence number (`None`: from the start), in order."""
        check_id("conversation_id", conversation_id)
        last = -1 if after is None or after == -1 else check_count("after", after)
        width = _EVERYTHING if limit is None else check_limit(limit)
        return await self._fetch(queries.READ_EVENTS, (conversation_id, last, width), queries.events_from)

    async def count(self, conversation_id: str) -> int:
        """Return the number of events of a conversation."""
        check_id("conversation_id", conversation_id)
        return await self._fetch(queries.COUNT_EVENTS, (conversation_id,), _number_of)

    async def delete(self, conversation_id: str) -> int:
        """Delete all events of a conversation, and return how many were deleted."""
        check_id("conversation_id", conversation_id)
        return await self._write(partial(_delete, conversation_id))

    async def _project_once(
        self, session: Session, conversation_id: str, origin: Origin
    ) -> list[ConversationEvent] | None:
        """Try to project once. Return `None` if another writer changed the log meanwhile."""
        head = await self._head(conversation_id)
        reading = await read_session(session, head.tail)
        change = await self._change(conversation_id, head, reading, origin)
        if not change.events and not change.moved and change.tail == head.tail:
            return []
        first = await self._write(partial(_apply, conversation_id, change))
        return None if first is None else numbered(change.events, first)

    async def _change(
        self, conversation_id: str, head: EventHead, reading: Reading, origin: Origin
    ) -> _Change:
        """Compute the events that the log lacks."""
        places = await _in_thread_if_long(reading.items, reading.places)
        new, moved = Difference(list(range(len(places))), {})
        if reading.is_whole:
            logged = await self._fetch(queries.READ_PLACES, (conversation_id,), queries.logged_from)
            new, moved = await _in_thread_if_long(logged, lambda: compare(logged, places))
        items, positions = [reading.items[n] for n in new], [reading.positions[n] for n in new]
        events = await self._events(conversation_id, items, positions, origin)
        return _Change(head, events, moved, tail_of(places if reading.is_whole else [*head.tail, *places]))

    async def _events(
        self, conversation_id: str, items: list[Item], positions: Sequence[int | None], origin: Origin
    ) -> list[ConversationEvent]:
        """Convert items into events, with the tool names of earlier calls."""
        calls: dict[str, str] = {}
        if has_foreign_outputs(items):
            first = (await self._head(conversation_id)).next_sequence - _CALLS_BACK
            calls = await self._fetch(queries.READ_CALLS, (conversation_id, first), queries.calls_from)
        return await _in_thread_if_long(
            items, lambda: events_of(conversation_id, items, positions, origin, calls)
        )

    async def _head(self, conversation_id: str) -> EventHead:
        return await self._fetch(queries.READ_HEAD, (conversation_id,), _head_of)


# --- transactions ---


def read_head(conversation_id: str) -> Script[EventHead]:
    """The head of a conversation, as a step of a larger transaction."""
    return _head_of((yield Statement(queries.READ_HEAD, (conversation_id,))))


def advance_head(
    conversation_id: str, head: EventHead, events: list[ConversationEvent]
) -> Script[EventHead | None]:
    """Make place for events as a step of a larger transaction, and return the new head.

    `events_before` gives the changes that add them. Returns `None` if another writer has changed the log
    since the head was read.
    """
    places = [
        ItemPosition(event.position, event.fingerprint) for event in events if event.position is not None
    ]
    change = _Change(head, events, {}, tail_of([*head.tail, *places]))
    stamp = new_hex()
    next_sequence = yield from _change_head(conversation_id, change, stamp)
    return None if next_sequence is None else EventHead(stamp, next_sequence, change.tail)


def events_before(head: EventHead, events: list[ConversationEvent]) -> Iterator[Statement]:
    """The changes that add the last events before a head."""
    return queries.add_events(events, head.next_sequence - len(events))


def _append(conversation_id: str, events: list[ConversationEvent]) -> Script[int]:
    """Append events, and return the sequence number of the first."""
    rows = yield Statement(queries.ADVANCE_HEAD, (conversation_id, new_hex(), len(events)))
    first = int(rows[0][0]) - len(events)
    yield from run_all(queries.add_events(events, first))
    return first


def _change_head(conversation_id: str, change: _Change, stamp: str) -> Script[int | None]:
    """Change the head, and return its next sequence number; `None` if it is another one by now."""
    tail = json.dumps(change.tail)
    values = (conversation_id, stamp, len(change.events), tail)
    if change.head.stamp is None:
        rows = yield Statement(queries.MAKE_HEAD, values)
    else:
        rows = yield Statement(queries.CHANGE_HEAD, (*values, change.head.stamp))
    return int(rows[0][0]) if rows else None


def _apply(conversation_id: str, change: _Change) -> Script[int | None]:
    """Apply a change. Return the sequence number of its first event, or `None` if the head has changed."""
    next_sequence = yield from _change_head(conversation_id, change, new_hex())
    if next_sequence is None:
        return None
    first = next_sequence - len(change.events)
    yield from run_all(queries.move_events(conversation_id, change.moved))
    yield from run_all(queries.add_events(change.events, first))
    return first


def _delete(conversation_id: str) -> Script[int]:
    """Delete the head first: a concurrent writer waits for its row, and then starts a new log.

    Without a head there are no events, and no row that a concurrent writer would wait for. Events that it
    adds in the meantime have a head that stays, so they stay, too.
    """
    if not (yield Statement(queries.DELETE_HEAD, (conversation_id,))):
        return 0
    rows = yield Statement(queries.DELETE_EVENTS, (conversation_id,))
    return len(rows)


# --- what goes in and comes out ---


def _head_of(rows: list[Row]) -> EventHead:
    if not rows:
        return EventHead()
    stamp, next_sequence, tail = rows[0]
    return EventHead(stamp, next_sequence, tuple(ItemPosition(*place) for place in json.loads(tail)))


def _number_of(rows: list[Row]) -> int:
    return int(rows[0][0])


def _origin(
    response_id: str | None, agent: str | None, model: str | None, created_at: datetime | None
) -> Origin:
    return Origin(
        check_label("response_id", response_id),
        check_label("agent", agent),
        check_label("model", model),
        check_time("created_at", created_at),
    )


def _checked_positions(positions: Sequence[int] | None, items: Items) -> Sequence[int | None]:
    if positions is None:
        return [None] * len(items)
    if len(positions) != len(items):
        raise ValueError(f"there must be a position for each of {len(items)} items, not {len(positions)}")
    return [check_count("a position", position) for position in positions]


async def _in_thread_if_long(about: Sequence[object], work: Callable[[], T]) -> T:
    """Run a function, in a thread if it processes many items, to keep the event loop free."""
    return await asyncio.to_thread(work) if len(about) > _LONG else work()
