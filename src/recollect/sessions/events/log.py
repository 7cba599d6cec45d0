"""The event log of conversations, in SQLite or PostgreSQL."""

import asyncio
import json
import random
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from ...items import Item
from ...sql.columns import check_count, check_id, check_label, check_time
from ...sql.database import SQLStore
from ...sql.scripts import Row, Script, Statement, run_all
from ..protocol import Items, Session
from ..sdk_hooks import encode_batch
from ..settings import check_limit
from . import queries
from .event import ConversationEvent, Origin, events_of, has_foreign_outputs, numbered
from .projection import Difference, Place, Reading, compare, read_session, tail_of
from .schema import EventSchema

T = TypeVar("T")

_EVERYTHING = 2**62  # rows: no limit at all
_LONG = 1000  # items: to take apart more than these would hold up the event loop
_CALLS_BACK = 200  # events in which the call of an output is looked for
_LONGEST_WAIT = 0.01  # seconds until a log that another has changed is looked at again


class _Head(NamedTuple):
    """What is known of a conversation without reading its events."""

    stamp: str | None = None
    next_sequence: int = 0
    tail: tuple[Place, ...] = ()


class _Change(NamedTuple):
    """What is to be done to a conversation that has not changed since its head was read."""

    head: _Head
    events: list[ConversationEvent]
    moved: dict[int, int]
    tail: tuple[Place, ...]


class EventLog(SQLStore):
    """What happened in conversations, in sequence: it stays as it was when a session is rewritten or cleared.

    Give it a path, `sqlite:///path`, `:memory:`, or the URL of a PostgreSQL. Numbers start at 0 in each
    conversation and have no gaps, however many processes add events at once.

    Events are stored as plain text. To project an encrypted session, through the wrapper that decrypts it,
    is to store its contents in the clear: then keep the log where that is allowed, or do without.
    """

    schema = EventSchema()

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
        """Add an event for each item, all or none of them, and return them. Whatever is there stays.

        Who appends the same items twice has them twice: `project` is what finds out which are new.
        """
        check_id("conversation_id", conversation_id)
        origin = _origin(response_id, agent, model, created_at)
        await encode_batch(items)  # one that is no item is refused here, before anything is done
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
        """Add what the session has that the log has not, and return it. A second time adds nothing.

        The conversation is that of the session's id, unless another is given. Of a session with positions
        only what was added since is read; one that was rewritten, or has no positions, is read whole and
        compared, so that nothing old comes again.
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
        """The first `limit` events after a sequence number (`None`: from the start), in order."""
        check_id("conversation_id", conversation_id)
        last = -1 if after is None or after == -1 else check_count("after", after)
        width = _EVERYTHING if limit is None else check_limit(limit)
        return await self._fetch(queries.READ_EVENTS, (conversation_id, last, width), queries.events_from)

    async def count(self, conversation_id: str) -> int:
        """How many events a conversation has."""
        check_id("conversation_id", conversation_id)
        return await self._fetch(queries.COUNT_EVENTS, (conversation_id,), _number_of)

    async def delete(self, conversation_id: str) -> int:
        """Delete all events of a conversation, and return how many there were."""
        check_id("conversation_id", conversation_id)
        return await self._write(partial(_delete, conversation_id))

    async def _project_once(
        self, session: Session, conversation_id: str, origin: Origin
    ) -> list[ConversationEvent] | None:
        """One attempt; `None` if another has changed the log meanwhile."""
        head = await self._head(conversation_id)
        reading = await read_session(session, head.tail)
        change = await self._change(conversation_id, head, reading, origin)
        if not change.events and not change.moved and change.tail == head.tail:
            return []
        first = await self._write(partial(_apply, conversation_id, change))
        return None if first is None else numbered(change.events, first)

    async def _change(self, conversation_id: str, head: _Head, reading: Reading, origin: Origin) -> _Change:
        """What the log lacks of what was read."""
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
        """The events of items, with the names of tools that were called earlier."""
        calls: dict[str, str] = {}
        if has_foreign_outputs(items):
            first = (await self._head(conversation_id)).next_sequence - _CALLS_BACK
            calls = await self._fetch(queries.READ_CALLS, (conversation_id, first), queries.calls_from)
        return await _in_thread_if_long(
            items, lambda: events_of(conversation_id, items, positions, origin, calls)
        )

    async def _head(self, conversation_id: str) -> _Head:
        return await self._fetch(queries.READ_HEAD, (conversation_id,), _head_of)


# --- transactions ---


def _append(conversation_id: str, events: list[ConversationEvent]) -> Script[int]:
    """Add events after those that are there; returns the number of the first."""
    rows = yield Statement(queries.ADVANCE_HEAD, (conversation_id, uuid.uuid4().hex, len(events)))
    first = int(rows[0][0]) - len(events)
    yield from run_all(queries.add_events(events, first))
    return first


def _apply(conversation_id: str, change: _Change) -> Script[int | None]:
    """Make a change; returns the number of its first event, `None` if the log is not what it was."""
    tail = json.dumps(change.tail)
    values = (conversation_id, uuid.uuid4().hex, len(change.events), tail)
    if change.head.stamp is None:
        rows = yield Statement(queries.MAKE_HEAD, values)
    else:
        rows = yield Statement(queries.CHANGE_HEAD, (*values, change.head.stamp))
    if not rows:
        return None
    first = int(rows[0][0]) - len(change.events)
    yield from run_all(queries.move_events(conversation_id, change.moved))
    yield from run_all(queries.add_events(change.events, first))
    return first


def _delete(conversation_id: str) -> Script[int]:
    """The head first: whoever is about to add to it waits, and then starts anew."""
    yield Statement(queries.DELETE_HEAD, (conversation_id,))
    rows = yield Statement(queries.DELETE_EVENTS, (conversation_id,))
    return len(rows)


# --- what goes in and comes out ---


def _head_of(rows: list[Row]) -> _Head:
    if not rows:
        return _Head()
    stamp, next_sequence, tail = rows[0]
    return _Head(stamp, next_sequence, tuple(Place(*place) for place in json.loads(tail)))


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
    """The outcome of some work; where it is about much, the event loop goes on meanwhile."""
    return await asyncio.to_thread(work) if len(about) > _LONG else work()
