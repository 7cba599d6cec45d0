"""Creates the runs of conversations: at once, when a conversation is closed, or after a quiet period.

Lock order, as in every transaction on runs: the queue row, then the memory, then the conversation.
"""

from collections.abc import Sequence
from functools import partial

from ...sql.scripts import Script, Statement
from ..conversation import Message
from ..database import conversations, quiet_period, removal, runs
from ..database.access import MemoryDatabase, column_now
from ..database.quiet_period import Due

_AT_ONCE = 50  # conversations
_MOST_MESSAGES = 100  # of one run
_MOST_CHARACTERS = 40_000  # of the messages of one run
_LAST = 2**62  # higher than the index of any message


class RunScheduler:
    """Creates the runs of conversations whose quiet period has ended, of one tenant or of all."""

    def __init__(self, database: MemoryDatabase, tenant: str | None) -> None:
        self._database = database
        self._tenant = tenant
        self.has_backlog = False
        """Whether imported conversations wait until other runs have ended."""

    async def step(self) -> int:
        """Create the runs of some due conversations; returns the number of conversations."""
        queries = self._database.quiet
        made = 0
        for due in queries.due_anywhere if self._tenant is None else queries.due:
            for each in await self._database.fetch(due, (self._tenant, _AT_ONCE), quiet_period.due_from):
                made += await self._create(each)
        return made or await self._take_from_backlog()

    async def _take_from_backlog(self) -> int:
        """Create the runs of the oldest imported conversation, unless a run waits for a worker."""
        queries, is_any = self._database.quiet, self._tenant is None
        live = queries.live_anywhere if is_any else queries.live
        if await self._database.fetch(live, (self._tenant,), len):
            return 0
        backlog = queries.backlog_anywhere if is_any else queries.backlog
        found = await self._database.fetch(backlog, (self._tenant, 1), quiet_period.due_from)
        if found:
            self.has_backlog = True
            return await self._create(found[0])
        waiting = queries.any_backlog_anywhere if is_any else queries.any_backlog
        self.has_backlog = bool(await self._database.fetch(waiting, (self._tenant, 1), len))
        return 0

    async def _create(self, due: Due) -> bool:
        return await self._database.write(partial(create_runs_if_due, self._database, due, column_now()))


# --- transactions ---


def create_runs_if_due(database: MemoryDatabase, owner: Due, now: str) -> Script[bool]:
    """Create the runs of a due conversation; `False` if another worker has, or a new message came."""
    return (yield from _lock_and_create(database, owner, now, database.quiet.lock_if_due))


def close(database: MemoryDatabase, owner: Due, now: str) -> Script[bool]:
    """Close a conversation and create the runs of its remaining messages; `False` if it no longer exists."""
    exists = yield from _lock_and_create(database, owner, now, database.quiet.lock)
    if exists:
        yield Statement(quiet_period.CLOSE, (owner.conversation_id, now))
    return exists


def _lock_and_create(database: MemoryDatabase, owner: Due, now: str, hold: str) -> Script[bool]:
    enqueue, memory_id = database.queue.enqueue, owner.memory_id
    if not (yield from removal.lock_queue(database.removal, enqueue, owner.tenant, memory_id)):
        return False
    rows = yield Statement(hold, (owner.conversation_id, owner.tenant))
    if rows and rows[0][0] is not None:
        yield from create_runs(database, owner, rows[0][0], now)
    yield Statement(database.queue.dequeue_if_done, (owner.memory_id,))
    return bool(rows)


def create_runs(database: MemoryDatabase, owner: Due, first: int, now: str) -> Script[None]:
    """Create runs for all messages from index `first` on. The caller holds the lock on the queue row."""
    rows = yield Statement(conversations.READ_MESSAGES, (owner.conversation_id, first, _LAST))
    spans = spans_of(conversations.messages_from(rows))
    yield from runs.enqueue(database.queue, owner.tenant, owner.memory_id, owner.conversation_id, spans, now)
    yield Statement(quiet_period.ALL_IN_RUNS, (owner.conversation_id,))


def spans_of(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """The first and the last message index of each run, such that a model can read the messages at once."""
    spans: list[tuple[int, int]] = []
    size = 0
    for message in messages:
        size += len(message.content)
        if spans and _fits(spans[-1], message.message_index, size):
            spans[-1] = (spans[-1][0], message.message_index)
        else:
            spans.append((message.message_index, message.message_index))
            size = len(message.content)
    return spans


def _fits(span: tuple[int, int], index: int, size: int) -> bool:
    return index - span[0] < _MOST_MESSAGES and size <= _MOST_CHARACTERS
