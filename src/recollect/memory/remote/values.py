"""The values of a store, from the JSON of the service."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ...errors import InvalidValueError, StorageError
from ..block import Block, Line
from ..conversation import Conversation, ConversationSettings, Message
from ..entry import Entry
from ..hits import MemoryHit, MemorySearch, Recalled, TurnHit, TurnSearch
from ..memory import Memory
from ..rights.why import Edit, Origin, Quote, Why
from ..times import format_time, read_time

T = TypeVar("T")


def not_over_http(what: str) -> InvalidValueError:
    """The error for a call that only a store with a database of its own can serve."""
    return InvalidValueError(f"{what} is not available over HTTP: use a store with the database itself")


def value_from(kind: type[T], given: Any) -> T:
    """A value from its JSON object. A service of another version may send more fields, which are ignored."""
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise StorageError(f"the service sent no valid {kind.__name__}: is its version older?") from error


def read_value(kind: Any, given: Any) -> Any:
    """A value from its JSON. Most kinds have a JSON object with their fields."""
    read = _READERS.get(kind)
    return value_from(kind, given) if read is None else read(given)


def entry_from(given: Mapping[str, Any]) -> Entry:
    """An entry from its JSON object."""
    renamed = {**given, "text": given.get("content_text"), "data": given.get("content_data", {})}
    return value_from(Entry, renamed)


def entries_from(given: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Entries from their JSON objects."""
    return [entry_from(each) for each in given]


def message_from(given: Mapping[str, Any]) -> Message:
    """A message from its JSON object."""
    return value_from(Message, given)


def conversation_from(given: Mapping[str, Any]) -> Conversation:
    """A conversation from its JSON object, closed or open."""
    conversation = Conversation.from_dict(given)
    conversation.closed_at = read_time("closed_at", given.get("closed_at"))
    return conversation


def settings_from(conversation_id: str, given: Mapping[str, Any]) -> ConversationSettings:
    """The settings of a conversation."""
    return value_from(ConversationSettings, {**given, "conversation_id": conversation_id})


def memory_hit_from(given: Mapping[str, Any]) -> MemoryHit:
    """A hit among entries."""
    return MemoryHit(
        entry_from(given["entry"]),
        float(given["score"]),
        given.get("parts") or {},
        given["agent_id"],
        given["user_id"],
    )


def turn_hit_from(given: Mapping[str, Any]) -> TurnHit:
    """A hit among messages."""
    return TurnHit(
        message_from(given["message"]),
        given["conversation_id"],
        given["session_id"],
        float(given["score"]),
        given.get("parts") or {},
        given["agent_id"],
        given["passage"],
        given["user_id"],
    )


def memory_search_from(given: Mapping[str, Any]) -> MemorySearch:
    """A search among entries."""
    hits = tuple(map(memory_hit_from, given["items"]))
    return MemorySearch(hits, tuple(given["warnings"]), float(given["relevance"]))


def turn_search_from(given: Mapping[str, Any]) -> TurnSearch:
    """A search among messages."""
    hits = tuple(map(turn_hit_from, given["items"]))
    return TurnSearch(hits, tuple(given["warnings"]), float(given["relevance"]))


def recalled_from(given: Mapping[str, Any]) -> Recalled:
    """A block for a prompt."""
    return Recalled(
        given["text"],
        tuple(map(memory_hit_from, given["entries"])),
        tuple(map(turn_hit_from, given["turns"])),
        tuple(given["warnings"]),
        tuple(entries_from(given["instructions"])),
        Block(tuple(map(line_from, given["lines"])), read_time("now", given["now"])),
    )


def line_from(given: Mapping[str, Any]) -> Line:
    """A line of a block."""
    messages = tuple((conversation_id, message_id) for conversation_id, message_id in given["messages"])
    return value_from(Line, {**given, "messages": messages})


def why_from(given: Mapping[str, Any]) -> Why:
    """The reasons for an entry."""
    origin, edit = given.get("origin"), given.get("edit")
    return Why(
        entry_from(given["entry"]),
        tuple(value_from(Quote, each) for each in given["evidence"]),
        None if origin is None else value_from(Origin, origin),
        tuple(entries_from(given["supersedes"])),
        tuple(entries_from(given["superseded_by"])),
        None if edit is None else value_from(Edit, edit),
    )


def outline_from(given: Mapping[str, Any]) -> dict[str, Any]:
    """The outline of a conversation as a local store returns it. Its position is its time and its id."""
    position = f"{given['created_at']}/{given['conversation_id']}"
    return {"pipeline_result": None, **given, "position": position}


_READERS: dict[Any, Callable[[Any], Any]] = {
    int: lambda answer: int(answer["deleted"]),
    Entry: entry_from,
    Memory: Memory.from_dict,
    Conversation: conversation_from,
    tuple[int, Entry]: lambda row: (int(row["position"]), entry_from(row)),
    MemorySearch: memory_search_from,
    TurnSearch: turn_search_from,
    Recalled: recalled_from,
    dict[str, Any]: outline_from,
}
"""The kinds of values whose JSON has other names."""


def time_to_json(given: datetime | str | None) -> str | None:
    """A time or a bound as the service takes it."""
    return format_time(given) if isinstance(given, datetime) else given
