"""What a task of a client does next: chosen by its own stream of random numbers, and by nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from .model import SHARED, Line, Operation, Said, Talk, User
from .words import word_of

USERS_OF_TASK = 3
SHARED_USERS = 2
_MOST_TALKS = 6  # of a user, until one is erased rather than a further one made
_MOST_LINES = 8
_WRITES = {
    "record": 5,
    "append": 20,
    "append_shared": 7,
    "close": 2,
    "add_entry": 8,
    "edit_entry": 6,
    "delete_entry": 3,
    "erase_message": 2,
    "erase_conversation": 1,
    "erase_user": 1,
}
LOOKS = {"conversation": 20, "turns": 8, "memories": 6, "entries": 6, "history": 5}
"""What is read and compared, and how often."""


@dataclass(frozen=True)
class Name:
    """Which task of which client it is, in which of its lives."""

    client: int
    life: int
    task: int

    def __str__(self) -> str:
        return f"{self.client}.{self.life}.{self.task}"


def shared_talk(user: str) -> str:
    """The conversation of a user whom all clients share."""
    return f"{user} talk"


class Chooser:
    """Chooses the operations of one task, whose users are nobody else's."""

    def __init__(self, seed: int, name: Name) -> None:
        self._random = Random(f"{seed}/{name}")
        self._name = name
        self._number = 0
        self.users = [User(f"user {name}.{number}") for number in range(USERS_OF_TASK)]

    def is_look(self) -> bool:
        """Whether something is to be read next, rather than written."""
        return self._random.random() < 0.45

    def look(self) -> tuple[str, User]:
        """What is to be read, and of whom."""
        (kind,) = self._random.choices(list(LOOKS), list(LOOKS.values()))
        return kind, self._random.choice(self.users)

    def one_of(self, some: Sequence[str]) -> str:
        """One of several, where there are any."""
        return self._random.choice(some) if some else ""

    def write(self) -> Operation:
        """What is to be written."""
        (do,) = self._random.choices(list(_WRITES), list(_WRITES.values()))
        user = self._random.choice(self.users)
        if do == SHARED:
            return self._append_shared()
        if "entry" in do:
            return self._about_entry(do, user)
        return self._about_talk(do, user)

    def _about_entry(self, do: str, user: User) -> Operation:
        if do != "add_entry" and user.lines:
            entry = self._random.choice(list(user.lines))
            line: Line = user.lines[entry]
            text = f"Owns a {self._word()}" if do == "edit_entry" else ""
            return Operation(do, user.name, entry=entry, content_id=line.head, text=text)
        if len(user.lines) >= _MOST_LINES:
            return self._about_entry("delete_entry", user)
        word = self._word()
        return Operation("add_entry", user.name, entry=f"entry {word}", text=f"Owns a {word}")

    def _about_talk(self, do: str, user: User) -> Operation:
        if do == "erase_user":
            return Operation(do, user.name)
        if do == "record" and len(user.talks) >= _MOST_TALKS:
            do = "erase_conversation"
        fitting = [name for name, talk in user.talks.items() if _fits(do, talk)]
        if do == "record" or not fitting:
            return Operation("record", user.name, f"talk {self._word()}", self._said())
        talk = self._random.choice(fitting)
        if do == "append":
            wait = self._random.choice((None, *[0.3] * 5))
            return Operation(do, user.name, talk, self._said(), wait)
        if do == "erase_message":
            said = self._random.choice(list(user.talks[talk].messages.values()))
            return Operation(do, user.name, talk, message_id=said.message_id)
        return Operation(do, user.name, talk)

    def _append_shared(self) -> Operation:
        user = f"shared {self._random.randrange(SHARED_USERS)}"
        return Operation(SHARED, user, shared_talk(user), self._said(), 0.3)

    def _said(self) -> tuple[Said, ...]:
        """From one to four messages, the user's first."""
        return tuple(_message(place, self._word()) for place in range(self._random.randint(1, 4)))

    def _word(self) -> str:
        self._number += 1
        return word_of(self._name.client, self._name.life, self._name.task, self._number)


def _message(place: int, word: str) -> Said:
    """Something to learn from the user, or what an assistant says to that."""
    if place % 2:
        return Said(f"message {word}", "assistant", f"Noted: {word}")
    return Said(f"message {word}", "user", f"I like {word}.")


def _fits(do: str, talk: Talk) -> bool:
    if do in ("append", "close"):
        return not talk.is_closed
    return do != "erase_message" or bool(talk.messages)
