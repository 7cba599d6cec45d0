"""The labelled conversations: what was said, the facts a careful person keeps, and what nobody keeps."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from recollect.memory.conversation import Message

DATA = Path(__file__).parent / "data"
Half = Literal["tune", "report"]
HALVES: tuple[Half, Half] = ("tune", "report")


@dataclass(frozen=True)
class Fact:
    """A fact that a careful person keeps."""

    fact_id: str
    kinds: frozenset[str]
    """The types of entry that fit."""
    text: str
    words: tuple[tuple[str, ...], ...]
    """An entry about the fact has, of each group, one of the words."""
    said_in: frozenset[str]
    """The ids of the messages that state it."""
    dates: tuple[str, ...] = ()
    """The dates that are right; empty if it has none."""
    ends: str | None = None
    """The earlier fact that holds no more."""
    denied: bool | None = None
    """Whether it denies something; `None` if the words of a right entry may or may not deny."""
    is_optional: bool = False
    """Whether a careful person may leave it out. It counts neither for nor against an extractor."""


@dataclass(frozen=True)
class Labelled:
    """A conversation with its labels."""

    name: str
    user: str
    sessions: tuple[tuple[Message, ...], ...]
    facts: tuple[Fact, ...]
    not_kept: Mapping[str, tuple[str, ...]]
    """Sentences that nobody keeps, by the id of a message that has facts, too."""

    @property
    def messages(self) -> int:
        """How many messages it has."""
        return sum(map(len, self.sessions))

    @property
    def half(self) -> Half:
        """Whether it may be used to write rules, or is kept back to report on them."""
        return half_of(self.name)


def half_of(name: str) -> Half:
    """The half that a conversation belongs to, by a hash of its name: nobody chooses."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def load(folder: Path = DATA) -> list[Labelled]:
    """All labelled conversations of a folder."""
    files = sorted(folder.glob("*.json"))
    return [_labelled(each) for file in files for each in json.loads(file.read_text(encoding="utf-8"))]


def _labelled(given: Mapping[str, Any]) -> Labelled:
    not_kept: dict[str, tuple[str, ...]] = {}
    for each in given["not_kept"]:
        not_kept[each["message"]] = (*not_kept.get(each["message"], ()), each["sentence"])
    return Labelled(
        given["id"],
        given["user"],
        tuple(tuple(_messages(session)) for session in given["sessions"]),
        tuple(map(_fact, given["facts"])),
        not_kept,
    )


def _messages(session: Mapping[str, Any]) -> Iterator[Message]:
    said_at = datetime.fromisoformat(session["time"])
    for place, each in enumerate(session["messages"]):
        yield Message(each["role"], each["content"], each["id"], place, said_at, each.get("name"))


def _fact(given: Mapping[str, Any]) -> Fact:
    return Fact(
        given["id"],
        frozenset(given["kinds"]),
        given["text"],
        tuple(tuple(group) for group in given["words"]),
        frozenset(given["said_in"]),
        tuple(given.get("dates", ())),
        given.get("ends"),
        given.get("denied"),
        given.get("optional", False),
    )
