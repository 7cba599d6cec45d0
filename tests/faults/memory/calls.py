"""The operations as calls of a store: done until they are acknowledged, or read and compared."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from recollect.errors import ConflictError, ConnectionLostError, DiskFullError, TransientError
from recollect.memory.store import MemoryStore

from .model import SHARED, Operation, User
from .words import words_in
from .workload import Chooser

AGENT = "agent"
_ALL = 1_000  # hits: whether something is found is asked here, not how well
_PAUSE = 0.05  # seconds until a database that failed is asked again
_PASSING = (TransientError, ConnectionLostError, DiskFullError)
"""What a caller is told to try again after; any other error is not to be had from the faults there are."""

Refused: TypeAlias = Callable[[str], None]
"""Is told the name of each error after which a call is made again."""


class BrokenPromiseError(Exception):
    """Something was not as it must be."""


async def acknowledged(store: MemoryStore, operation: Operation, refused: Refused) -> str:
    """Do an operation until it is acknowledged; returns the id of the entry that an edit made."""
    is_again = False
    while True:
        try:
            return await _do(store, operation)
        except _PASSING as error:
            is_again = True
            await _pause(error, refused)
        except ConflictError as error:
            if operation.do != "edit_entry" or not is_again:
                raise BrokenPromiseError(f"{operation.do} of {operation.user}: {error}") from error
            return await _made_before(store, operation, refused)


async def _pause(error: Exception, refused: Refused) -> None:
    refused(type(error).__name__)
    await asyncio.sleep(_PAUSE)


async def _do(store: MemoryStore, operation: Operation) -> str:
    match operation.do:
        case "edit_entry":
            return (await store.edit_entry(operation.content_id, operation.text)).content_id
        case "add_entry":
            await store.add_entry(
                AGENT, operation.user, "profile", operation.text, content_id=operation.entry
            )
        case "delete_entry":
            await store.delete_entry(operation.content_id)
        case "erase_user":
            await store.erase_user(operation.user)
        case "erase_conversation":
            await store.erase_conversation(operation.talk)
        case "erase_message":
            await store.erase_message(operation.talk, operation.message_id)
        case _:
            await _talk(store, operation)
    return ""


async def _talk(store: MemoryStore, operation: Operation) -> None:
    said = [msgspec.to_builtins(each) for each in operation.said]
    if operation.do == "record":
        await store.record_conversation(AGENT, operation.user, said, conversation_id=operation.talk)
    elif operation.do == "close":
        await store.close_conversation(operation.talk)
    else:
        if operation.do == SHARED:
            await store.open_conversation(AGENT, operation.user, conversation_id=operation.talk)
        await store.append_messages(operation.talk, said, learn_after=operation.learn_after)


async def _made_before(store: MemoryStore, operation: Operation, refused: Refused) -> str:
    """The entry that an edit made whose answer was lost."""
    while True:
        try:
            old = await store.get_entry(operation.content_id)
        except _PASSING as error:
            await _pause(error, refused)
            continue
        if old is None or old.superseded_by is None:
            raise BrokenPromiseError(f"edit_entry of {operation.user}: refused, and not done before")
        return old.superseded_by


# --- reading ---


async def look(store: MemoryStore, kind: str, user: User, chooser: Chooser, refused: Refused) -> None:
    """Read something, as soon as the database answers; a `BrokenPromiseError` if it is not as it must be."""
    looks: dict[str, Callable[[], Awaitable[None]]] = {
        "conversation": lambda: _conversation(store, user, chooser.one_of([*user.talks])),
        "turns": lambda: _turns(store, user, chooser.one_of(_messages_of(user))),
        "memories": lambda: _memories(store, user, chooser.one_of([*user.lines])),
        "entries": lambda: _entries(store, user),
        "history": lambda: _history(store, user, chooser.one_of([*user.lines])),
    }
    call = looks[kind]()
    while True:
        try:
            return await call
        except _PASSING as error:
            await _pause(error, refused)
            call = looks[kind]()


async def _conversation(store: MemoryStore, user: User, talk: str) -> None:
    found = await store.get_conversation(talk or f"nothing of {user.name}")
    if not talk:
        _must(found is None, "a conversation that nobody has recorded")
        return
    _must(found is not None, f"{talk} is not there")
    assert found is not None
    told = {each.message_index: (each.message_id, each.role, each.content) for each in found.messages}
    kept = user.talks[talk]
    _must(told == {place: _fields(said) for place, said in kept.messages.items()}, f"{talk} is not as it was")
    _must((found.closed_at is not None) == kept.is_closed, f"{talk} is closed, or is not")


def _fields(said: msgspec.Struct) -> tuple[str, ...]:
    return msgspec.structs.astuple(said)


def _messages_of(user: User) -> list[str]:
    return [said.content for talk in user.talks.values() for said in talk.messages.values()]


async def _turns(store: MemoryStore, user: User, content: str) -> None:
    (word,) = words_in([content]) or {"nothing"}
    found = await store.search_conversations(word, AGENT, user.name, limit=_ALL)
    told = [hit.message.content for hit in found.hits]
    _must(not content or content in told, f"{word} of {user.name} is not found among the turns")
    _must(set(told) <= set(_messages_of(user)), f"a search for {user.name} finds what is not theirs")


async def _memories(store: MemoryStore, user: User, entry: str) -> None:
    line = user.lines.get(entry)
    (word,) = words_in(line.texts[-1:] if line else []) or {"nothing"}
    found = await store.search_memories(word, AGENT, user.name, limit=_ALL)
    ids = [hit.entry.content_id for hit in found.hits]
    _must(line is None or line.head in ids, f"{word} of {user.name} is not found among the memories")
    _must_be_theirs(user, [hit.entry.text for hit in found.hits])


async def _entries(store: MemoryStore, user: User) -> None:
    told = await store.list_entries(AGENT, user.name)
    by_hand = {entry.content_id: entry.text for entry in told if not entry.evidence}
    _must(
        by_hand == {line.head: line.texts[-1] for line in user.lines.values()},
        f"the entries of {user.name} are not those that were written",
    )
    _must_be_theirs(user, [entry.text for entry in told])
    learned = [each.message_id for entry in told for each in entry.evidence]
    _must(len(learned) == len(set(learned)), f"a message of {user.name} was applied twice")


async def _history(store: MemoryStore, user: User, entry: str) -> None:
    line = user.lines.get(entry)
    history = await store.get_history(line.head if line else f"nothing of {user.name}")
    told = [each.text for each in history]
    _must(told == (line.texts if line else []), f"the history of {entry} is not that of its edits")


def _must_be_theirs(user: User, texts: list[str]) -> None:
    foreign = words_in(texts) - words_in(user.texts())
    _must(not foreign, f"{user.name} is told what is not theirs, or was erased: {sorted(foreign)}")


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenPromiseError(what)
