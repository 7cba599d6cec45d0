"""Users with the state that a careful reader knows at the end: what holds, and what must not stand.

A file has one user after the other, as plain text:

    # name
    @ 2026-03-02             a conversation on that day
    U: what the user says    and lines that belong to it
    A: what the assistant says
    + kind | pattern | date  an entry that must hold: `fact`, `event`, `health` or `instruction`
    x pattern | why          no entry that holds may say this: it has `changed`, or it never was true
    ? question | right | outdated
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from pathlib import Path

from recollect.memory.conversation import Message

DATA = Path(__file__).parent / "data" / "users"
CHANGED = "changed"
_MARKS = {"+", "x", "?"}


@dataclass(frozen=True)
class Wanted:
    """An entry that must hold at the end."""

    kind: str
    pattern: re.Pattern[str]
    date: str = ""


@dataclass(frozen=True)
class Unwanted:
    """What no entry may say at the end."""

    pattern: re.Pattern[str]
    why: str


@dataclass(frozen=True)
class Question:
    """What is asked of `recall`, what the block must say, and what it must not say."""

    text: str
    right: re.Pattern[str] | None
    outdated: re.Pattern[str] | None


@dataclass
class User:
    """What a user said, and what is known of them at the end."""

    name: str
    sessions: list[list[Message]] = field(default_factory=list)
    wanted: list[Wanted] = field(default_factory=list)
    unwanted: list[Unwanted] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def load_users(path: Path) -> list[User]:
    """The users of a file."""
    users: list[User] = []
    for block in re.split(r"^# ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        users.append(_user(name.strip(), rest))
    return users


def _user(name: str, text: str) -> User:
    user = User(name)
    for conversation in re.split(r"^@ ", text, flags=re.MULTILINE)[1:]:
        day, _, rest = conversation.partition("\n")
        lines = rest.split("\n")
        said = [line for line in lines if line[:2].rstrip() not in _MARKS or line[1:2] != " "]
        user.sessions.append(list(_messages("\n".join(said), day.strip(), len(user.sessions))))
        for line in lines:
            if line[:2] in ("+ ", "x ", "? "):
                _label(user, line[0], [part.strip() for part in line[2:].split(" | ")])
    return user


def _messages(text: str, day: str, session: int) -> Iterator[Message]:
    said_at = datetime.combine(datetime.fromisoformat(day), time(10), UTC)
    parts = re.split(r"^([UA]): ", text, flags=re.MULTILINE)[1:]
    for place, (who, content) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        role = "user" if who == "U" else "assistant"
        yield Message(role, content.strip(), f"{session}-{place}", place, said_at)  # type: ignore[arg-type]


def _label(user: User, mark: str, parts: list[str]) -> None:
    first, second, third = (*parts, "", "")[:3]
    if mark == "+":
        user.wanted.append(Wanted(first, _pattern(second), third))
    elif mark == "x":
        user.unwanted.append(Unwanted(_pattern(first), second))
    else:
        right, outdated = (_pattern(each) if each else None for each in (second.rstrip(" |"), third))
        user.questions.append(Question(first, right, outdated))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
