"""What must be stored of a user after some operations: a model of long-term memory in a few lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

WRITES = (
    "record",
    "append",
    "close",
    "add_entry",
    "edit_entry",
    "delete_entry",
    "erase_message",
    "erase_conversation",
    "erase_user",
)
SHARED = "append_shared"
"""An append to a conversation that all clients write to."""


class Said(msgspec.Struct, frozen=True):
    """A message that is to be stored."""

    message_id: str
    role: str
    content: str


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call that changes something."""

    do: str
    user: str
    talk: str = ""
    said: tuple[Said, ...] = ()
    learn_after: float | None = None
    message_id: str = ""
    entry: str = ""
    """The id under which the entry was first written."""
    content_id: str = ""
    """The id that it has now."""
    text: str = ""


@dataclass
class Talk:
    """A conversation: its messages by their places, and whether it is closed."""

    messages: dict[int, Said] = field(default_factory=dict)
    next_index: int = 0
    is_closed: bool = False


@dataclass
class Line:
    """An entry through all its wordings, the oldest first, and the id of the newest."""

    head: str
    texts: list[str]


@dataclass
class User:
    """All that is stored about a user by their own doing; what was learned comes beside it."""

    name: str
    talks: dict[str, Talk] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        """Everything that may be found of them, ids too."""
        yield from (*self.talks, *self.lines)
        for talk in self.talks.values():
            yield from (said.content for said in talk.messages.values())
        for line in self.lines.values():
            yield from line.texts


def apply(user: User, operation: Operation, content_id: str = "") -> None:
    """Change what must be stored; `content_id` is what an edit made."""
    match operation.do:
        case "record":
            user.talks[operation.talk] = Talk()
            _say(user.talks[operation.talk], operation)
        case "append":
            _say(user.talks[operation.talk], operation)
        case "close":
            user.talks[operation.talk].is_closed = True
        case "add_entry":
            user.lines[operation.entry] = Line(operation.entry, [operation.text])
        case "edit_entry":
            line = user.lines[operation.entry]
            user.lines[operation.entry] = Line(content_id, [*line.texts, operation.text])
        case "delete_entry":
            del user.lines[operation.entry]
        case _:
            _erase(user, operation)


def _say(talk: Talk, operation: Operation) -> None:
    for said in operation.said:
        talk.messages[talk.next_index] = said
        talk.next_index += 1


def _erase(user: User, operation: Operation) -> None:
    if operation.do == "erase_user":
        user.talks.clear()
        user.lines.clear()
    elif operation.do == "erase_conversation":
        del user.talks[operation.talk]
    else:
        talk = user.talks[operation.talk]
        talk.messages = {
            place: said for place, said in talk.messages.items() if said.message_id != operation.message_id
        }
