"""Records what was said in proxied calls, after the answers were sent.

Turns of one user are recorded in order, those of several users side by side. A turn waits in memory, within a
limit. If the database is down for long, turns are dropped, and the next call of a client that sends its whole
history brings them again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from ...errors import ConflictError, InvalidTypeError, InvalidValueError, RecollectError
from ...memory.conversation import read_name
from ...memory.store import MemoryStore
from .answers import read_answer
from .fingerprints import SeenMessages, derive_id, fingerprints, message_id
from .speakers import Speaker
from .values import Dialect, Said, Thread

logger = logging.getLogger(__name__)

_LANES = 8  # turns that are recorded at the same time
_MOST_TURNS = 2000  # that wait
_MOST_BYTES = 64 * 1024 * 1024  # of waiting turns
_LARGE = 256 * 1024  # bytes: reading more would block the event loop
_PAUSES = (0.5, 2.0, 8.0, 30.0)  # seconds before each further attempt
_PAGE = 500


@dataclass(frozen=True)
class Turn:
    """A call that was answered: what was said in it, and the bytes of its answer."""

    store: MemoryStore
    speaker: Speaker
    thread: Thread
    said: Sequence[Said] = field(repr=False)
    dialect: Dialect
    encoding: str
    content: bytes = field(repr=False)

    @property
    def owner(self) -> tuple[str, ...]:
        """The scope of fingerprints: equal messages of other users, agents or sessions are other messages."""
        return (self.store.tenant, self.speaker.agent_id, self.speaker.user_id, self.session or "")

    @property
    def session(self) -> str | None:
        """The session by the header, else the conversation at the provider."""
        return self.speaker.session_id or self.thread.conversation

    @property
    def size(self) -> int:
        """About the bytes that it takes in memory."""
        return len(self.content) + sum(len(each.text) for each in self.said)


@dataclass(frozen=True)
class _Reading:
    """The messages of a turn with their fingerprints; the answer is the last one, if it has a text."""

    said: Sequence[Said]
    known: Sequence[bytes]
    response_id: str | None

    def newest(self, start: int) -> "_Reading":
        """The same without the messages before `start`."""
        return self if start <= 0 else _Reading(self.said[start:], self.known[start:], self.response_id)


def _read(turn: Turn) -> _Reading | None:
    """The messages of a turn; `None` if its answer is incomplete."""
    answer = read_answer(turn.dialect, turn.encoding, turn.content)
    if answer is None:
        return None
    said = [*turn.said, *([] if answer.text is None else [Said("assistant", answer.text)])]
    known = fingerprints(turn.owner, said, turn.thread.previous_response or "")
    return _Reading(said, known, answer.response_id)


class Recorder:
    """Records turns in the background, each message once. `count` is told the outcome of each turn."""

    def __init__(
        self, *, learn_after: float, most_messages: int, count: Callable[[str], object] = lambda _: None
    ) -> None:
        self._learn_after = learn_after
        self._most_messages = most_messages
        self._count = count
        self._seen = SeenMessages()
        self._responses = SeenMessages()
        self._lanes: list[asyncio.Queue[Turn]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._turns = self._size = 0

    def add(self, turn: Turn) -> None:
        """Record a turn soon."""
        if self._turns >= _MOST_TURNS or self._size + turn.size > _MOST_BYTES:
            self._count("dropped")
            logger.warning("proxied turn not recorded, too many are waiting", extra={"waiting": self._turns})
            return
        self._turns, self._size = self._turns + 1, self._size + turn.size
        self._lane_of(turn).put_nowait(turn)

    def _lane_of(self, turn: Turn) -> "asyncio.Queue[Turn]":
        if not self._lanes:
            self._lanes = [asyncio.Queue() for _ in range(_LANES)]
            self._tasks = [asyncio.create_task(self._work(lane)) for lane in self._lanes]
        return self._lanes[hash(turn.owner) % _LANES]

    async def wait(self) -> None:
        """Wait until all turns so far are recorded or given up."""
        await asyncio.gather(*(lane.join() for lane in self._lanes))

    async def aclose(self, seconds: float) -> None:
        """Record the waiting turns for so many seconds, and stop."""
        try:
            async with asyncio.timeout(seconds):
                await self.wait()
        except TimeoutError:
            logger.warning("proxied turns not recorded at shutdown", extra={"turns": self._turns})
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, lane: "asyncio.Queue[Turn]") -> None:
        while True:
            turn = await lane.get()
            try:
                self._count(await self._record_with_retries(turn))
            finally:
                self._turns, self._size = self._turns - 1, self._size - turn.size
                lane.task_done()

    async def _record_with_retries(self, turn: Turn) -> str:
        """Record a turn, several times if the database fails; returns the outcome."""
        read = await asyncio.to_thread(_read, turn) if turn.size > _LARGE else _read(turn)
        if read is None:
            return "incomplete"
        for pause in (*_PAUSES, None):
            try:
                return await self._record(turn, read.newest(len(read.said) - self._most_messages))
            except (InvalidValueError, InvalidTypeError, ConflictError) as error:
                logger.warning("proxied turn cannot be recorded", extra={"error": type(error).__name__})
                return "refused"
            except (RecollectError, OSError) as error:
                logger.warning("proxied turn not recorded yet", extra={"error": type(error).__name__})
                if pause is not None:
                    await asyncio.sleep(pause)
        return "failed"

    async def _record(self, turn: Turn, read: _Reading) -> str:
        start, found = self._seen.find_newest(read.known)
        conversation_id = self._conversation_of(turn, read.said[0], found)
        new = read.newest(start)
        if new.said:
            await self._store(turn, _messages(new), conversation_id, is_known=found is not None)
        for fingerprint in new.known:
            self._seen.add(fingerprint, conversation_id)
        if read.response_id is not None:
            self._responses.add(_response_key(turn, read.response_id), conversation_id)
        return "recorded" if new.said else "known"

    def _conversation_of(self, turn: Turn, first: Said, found: str | None) -> str:
        """The conversation of a turn: that of its session, of its earlier messages, or of its first one."""
        if turn.session is not None:
            return derive_id("session", *turn.owner)
        previous = turn.thread.previous_response
        if previous is not None:
            _, followed = self._responses.find_newest([_response_key(turn, previous)])
            return followed or found or derive_id("response", *turn.owner, previous)
        return found or derive_id("first", *turn.owner, first.role, first.text)

    async def _store(
        self, turn: Turn, messages: Sequence[dict[str, str]], conversation_id: str, *, is_known: bool
    ) -> None:
        """Append messages to a conversation, which is opened first if it is new or was erased."""
        store = turn.store
        if not is_known:
            await _open(turn, conversation_id)
        try:
            await store.append_messages(conversation_id, messages, learn_after=self._learn_after)
        except ConflictError:  # it was erased, or has some of the messages since before a restart
            await _open(turn, conversation_id)
            stored = {each async for each in _stored_ids(store, conversation_id)}
            new = _after_stored(messages, stored)
            if new:
                await store.append_messages(conversation_id, new, learn_after=self._learn_after)


async def _open(turn: Turn, conversation_id: str) -> None:
    speaker = turn.speaker
    await turn.store.open_conversation(
        speaker.agent_id, speaker.user_id, session_id=speaker.session_id, conversation_id=conversation_id
    )


def _response_key(turn: Turn, response_id: str) -> bytes:
    return fingerprints(turn.owner, [Said("assistant", response_id)], "response")[0]


def _messages(read: _Reading) -> list[dict[str, str]]:
    """The messages as the store takes them. Equal ones, as of a repeated exchange, are given once."""
    by_id = {message_id(known): each for known, each in zip(read.known, read.said, strict=True)}
    return [
        {"message_id": identifier, "role": said.role, "content": said.text, **_name_of(said)}
        for identifier, said in by_id.items()
    ]


def _name_of(said: Said) -> dict[str, str]:
    try:
        name = read_name("name", said.name)
    except (InvalidValueError, InvalidTypeError):  # the provider decides about its field
        return {}
    return {} if name is None else {"name": name}


async def _stored_ids(store: MemoryStore, conversation_id: str) -> AsyncIterator[str]:
    after: int | None = None
    while page := await store.list_messages(conversation_id, after=after, limit=_PAGE):
        for message in page:
            yield message.message_id
        after = page[-1].message_index


def _after_stored(messages: Sequence[dict[str, str]], stored: set[str]) -> Sequence[dict[str, str]]:
    """The messages after the newest stored one."""
    places = [place for place, message in enumerate(messages) if message["message_id"] in stored]
    return messages[places[-1] + 1 :] if places else messages
