"""Making the runs of conversations that have been quiet for long enough, or that are closed."""

from collections.abc import Sequence
from functools import partial

from ...sql.scripts import Script, Statement
from ..conversation import Message
from ..database import conversations, quiet_period, removal, runs
from ..database.access import MemoryDatabase, column_now
from ..database.quiet_period import Due

_AT_ONCE = 50  # conversations
_LAST = 2**62  # no message has an index as high


class QuietConversations:
    """Those of one tenant, or of all."""

    def __init__(self, database: MemoryDatabase, tenant: str | None) -> None:
        self._database = database
        self._tenant = tenant

    async def step(self) -> int:
        """Make the runs of some conversations whose time has come; returns of how many."""
        queries = self._database.quiet
        made = 0
        for due in queries.due_anywhere if self._tenant is None else queries.due:
            for each in await self._database.fetch(due, (self._tenant, _AT_ONCE), quiet_period.due_from):
                made += await self._database.write(partial(learn_if_due, self._database, each, column_now()))
        return made


# --- transactions ---


def learn_if_due(database: MemoryDatabase, owner: Due, now: str) -> Script[bool]:
    """Make the runs of a conversation whose time has come; `False` if another has, or it goes on."""
    return (yield from _learn(database, owner, now, database.quiet.lock_if_due))


def close(database: MemoryDatabase, owner: Due, now: str) -> Script[bool]:
    """Close a conversation, and make the runs of what waits; `False` if it is not there any more."""
    is_there = yield from _learn(database, owner, now, database.quiet.lock)
    if is_there:
        yield Statement(quiet_period.CLOSE, (owner.conversation_id, now))
    return is_there


def _learn(database: MemoryDatabase, owner: Due, now: str, hold: str) -> Script[bool]:
    enqueue, memory_id = database.queue.enqueue, owner.memory_id
    if not (yield from removal.lock_queue(database.removal, enqueue, owner.tenant, memory_id)):
        return False
    rows = yield Statement(hold, (owner.conversation_id, owner.tenant))
    if rows and rows[0][0] is not None:
        yield from make_runs(database, owner, rows[0][0], now)
    yield Statement(database.queue.forget_if_done, (owner.memory_id,))
    return bool(rows)


def make_runs(database: MemoryDatabase, owner: Due, first: int, now: str) -> Script[None]:
    """Make runs for all messages from one on. The queue must be held."""
    said = yield Statement(conversations.READ_MESSAGES, (owner.conversation_id, first, _LAST))
    spans = spans_of(conversations.messages_from(said))
    yield from runs.enqueue(database.queue, owner.tenant, owner.memory_id, owner.conversation_id, spans, now)
    yield Statement(quiet_period.ALL_IN_RUNS, (owner.conversation_id,))


_MOST_MESSAGES = 100
_MOST_CHARACTERS = 40_000


def spans_of(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """The first and the last index of each run over these messages."""
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
