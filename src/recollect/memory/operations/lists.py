"""Lists of memories, users, entries, conversations and runs, each read page by page."""

from dataclasses import KW_ONLY, dataclass
from operator import attrgetter, itemgetter
from typing import Annotated, Any

from ...errors import InvalidValueError
from ..entry import ContentType, Entry
from ..hits import ConversationsFound
from ..memory import MemoryOutline, UserOutline
from ..run import Run, RunStatus
from .description import (
    Key,
    Listing,
    LocalOnly,
    Operation,
    OwnerId,
    Place,
    Position,
    Route,
    Rows,
    Time,
    Words,
)

MAX_CONVERSATIONS = 10_000
"""The most conversations that a page of `FindConversations` looks through."""


def _check_both(agent_id: str | None, user_id: str | None) -> None:
    if (agent_id is None) != (user_id is None):
        raise InvalidValueError("agent_id and user_id must be given both, or neither")


@dataclass(frozen=True)
class ListMemories(Operation[list[MemoryOutline]]):
    """A page of memories without their entries, in the order of their ids.

    It covers the tenant, a user, or an agent and a user.
    """

    route = Route(
        "GET",
        "/v1/memories",
        "memories.list",
        "List memories",
        unless_admin=("agent_id", "user_id"),
        listing=Listing("memories", attrgetter("memory_id")),
    )

    agent_id: Annotated[OwnerId | None, "Only the memory of this agent, together with a user."] = None
    user_id: Annotated[OwnerId | None, "Only memories about this user."] = None
    _: KW_ONLY
    after: Annotated[Position | None, "The id of the last memory on the previous page."] = None
    limit: Annotated[Rows, "The most memories."] = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.agent_id is not None:
            _check_both(self.agent_id, self.user_id)


@dataclass(frozen=True)
class ListUsers(Operation[list[UserOutline]]):
    """A page of the users who have a memory or a conversation, each once.

    The order is stable, but it is not the order of their ids.
    """

    route = Route(
        "GET",
        "/v1/users",
        "users.list",
        "List users",
        scope="admin",
        listing=Listing("users", attrgetter("position")),
    )

    _: KW_ONLY
    after: Annotated[
        Position | None,
        "The `position` of the last user on the previous page. That user may have been erased since.",
    ] = None
    limit: Annotated[Rows, "The most users."] = 50


@dataclass(frozen=True, kw_only=True)
class EntryFilters:
    """The filters of every list of entries."""

    content_type: Annotated[ContentType | None, "Only entries of this type."] = None
    as_of: Annotated[Time | None, "Entries as known at this time."] = None
    include_retired: Annotated[bool, "Include retired, rejected and expired entries."] = False


@dataclass(frozen=True)
class ListEntries(EntryFilters, Operation[list[Entry]]):
    """The entries of an agent and a user with their evidence, in the order in which they were learned."""

    agent_id: OwnerId
    user_id: OwnerId
    _: KW_ONLY
    limit: Annotated[Rows | None, "The most entries; all if absent."] = None


@dataclass(frozen=True)
class ListEntriesOf(EntryFilters, Operation[list[tuple[int, Entry]] | None]):
    """A page of the entries of a memory with their positions and evidence, in the order of the positions.

    That is the order in which they were learned.
    """

    route = Route(
        "GET",
        "/v1/memories/{memory_id}/entries",
        "entries.list",
        "List the entries of a memory",
        codes=("not_found",),
        names={"content_type": "type"},
        listing=Listing("entries", itemgetter(0)),
    )

    memory_id: Key
    _: KW_ONLY
    after: Annotated[Place | None, "The position of the last entry on the previous page."] = None
    limit: Annotated[Rows, "The most entries."] = 100


@dataclass(frozen=True, kw_only=True)
class ConversationFilters:
    """The filters of every list of conversations."""

    session_id: Annotated[Key | None, "Only conversations of this session."] = None
    before: Annotated[
        Position | None,
        "The `position` of the last conversation on the previous page. It may have been erased since.",
    ] = None
    limit: Annotated[Rows, "The most conversations."] = 50


_CONVERSATIONS = Listing("conversations", itemgetter("position"))


@dataclass(frozen=True)
class ListConversations(ConversationFilters, Operation[list[dict[str, Any]]]):
    """A page of conversations without their messages, the newest first.

    Without `agent_id` and `user_id`, which are given both or neither, it covers the whole tenant.
    """

    route = Route("GET", "/v1/conversations", "", "", listing=_CONVERSATIONS)

    agent_id: Annotated[OwnerId | None, "Only conversations with this agent."] = None
    user_id: Annotated[OwnerId | None, "Only conversations with this user."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_both(self.agent_id, self.user_id)


@dataclass(frozen=True)
class FindConversations(ConversationFilters, Operation[ConversationsFound]):
    """A page of conversations without their messages, newest first: those that contain some words, if given.

    The words match literally in the messages and in the names of their speakers. An id that the store
    generated finds its conversation. With words, or with an `agent_id` alone, a page looks through at most
    10,000 conversations. It may therefore be short or empty, and there may still be a next one.
    """

    route = Route(
        "GET",
        "/v1/conversations",
        "conversations.list",
        "List conversations",
        unless_admin=("agent_id", "user_id"),
        names={"words": "q"},
        listing=_CONVERSATIONS,
    )

    words: Annotated[Words | None, "Text that occurs in a message or the name of a speaker; or an id."] = None
    _: KW_ONLY
    agent_id: Annotated[OwnerId | None, "Only conversations with this agent."] = None
    user_id: Annotated[OwnerId | None, "Only conversations with this user."] = None
    look_through: Annotated[
        int, "The most conversations that a page looks through.", LocalOnly("look_through")
    ] = MAX_CONVERSATIONS


@dataclass(frozen=True)
class ListRuns(Operation[list[Run]]):
    """A page of runs, in the order of their ids."""

    route = Route(
        "GET",
        "/v1/runs",
        "runs.list",
        "List runs",
        unless_admin=("conversation_id",),
        listing=Listing("runs", attrgetter("run_id")),
    )

    status: Annotated[RunStatus | None, "Only runs with this status."] = None
    conversation_id: Annotated[Key | None, "Only runs that learn from this conversation."] = None
    after: Annotated[Position | None, "The id of the last run on the previous page."] = None
    limit: Annotated[Rows, "The most runs."] = 50


@dataclass(frozen=True)
class ListNewestRuns(Operation[list[Run]]):
    """A page of runs, newest first."""

    route = Route(
        "GET",
        "/v1/runs",
        "",
        "",
        always={"order": "newest"},
        listing=Listing("newest runs", attrgetter("position")),
    )

    status: Annotated[RunStatus | None, "Only runs with this status."] = None
    conversation_id: Annotated[Key | None, "Only runs that learn from this conversation."] = None
    before: Annotated[Position | None, "The `position` of the last run on the previous page."] = None
    limit: Annotated[Rows, "The most runs."] = 50
