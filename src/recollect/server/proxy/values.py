"""Values that the proxy's modules share: what was said in a call, and what an API makes of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from ...memory.prompting import PromptParts

Place: TypeAlias = Literal["late", "system"]
"""Where a tail goes: after the newest message, so that all before stays a cached prefix, or into the system
text, for servers that accept nothing else."""
Body: TypeAlias = dict[str, Any]
"""The JSON object of a call or an answer."""


@dataclass(frozen=True)
class Said:
    """A text that the user or the assistant said."""

    role: Literal["user", "assistant"]
    text: str = field(repr=False)
    name: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Answer:
    """The complete answer of a model."""

    text: str | None = field(repr=False)
    """`None` if it has no text, or more than one choice of it."""
    response_id: str | None = None


@dataclass(frozen=True)
class Thread:
    """Where the provider keeps the earlier turns of a call, if it does."""

    conversation: str | None = None
    previous_response: str | None = None


class Dialect(Protocol):
    """How one API names the user, carries messages and gives answers. Calls may be of any shape."""

    def user_of(self, body: Body) -> object:
        """The API's own field for the user, unchecked; `None` if it is missing."""
        ...

    def thread_of(self, body: Body) -> Thread:
        """Where the provider keeps the earlier turns."""
        ...

    def said_in(self, body: Body) -> Sequence[Said]:
        """The texts of the user and the assistant in a call, oldest first."""
        ...

    def add_memories(self, content: bytes, body: Body, parts: PromptParts) -> bytes | None:
        """The call with the page in its system text and the tail after the newest message of the user.

        `None` if it has no place for either.
        """
        ...

    def answer_in(self, document: Body) -> Answer | None:
        """The answer in a whole response; `None` if it is incomplete."""
        ...

    def answer_in_events(self, events: Iterable[Mapping[str, Any]]) -> Answer | None:
        """The answer in a stream of events; `None` if it is incomplete."""
        ...


def placed(parts: PromptParts, place: Place) -> PromptParts:
    """The parts, with the tail where it is to go."""
    if place == "late":
        return parts
    return replace(parts, page="\n\n".join(filter(None, (parts.page, parts.tail))), tail="")


def texts_in(content: object, kinds: Collection[str]) -> str:
    """The text of a message: a string, or the parts of these kinds, one per line."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in kinds)
    return "\n".join(text for text in texts if isinstance(text, str))


def objects_in(value: object) -> list[Any]:
    """The list, if it is a list of objects; else an empty one."""
    return value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else []


def is_first_call(body: Body) -> bool:
    """Whether a call has nothing but what the user has said, and instructions."""
    items = objects_in(body.get("messages", body.get("input")))
    return all(item.get("role") in ("user", "system", "developer") for item in items)


def newest_user(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the newest message of the user."""
    places = range(len(messages) - 1, -1, -1)
    return next((place for place in places if messages[place].get("role") == "user"), None)
