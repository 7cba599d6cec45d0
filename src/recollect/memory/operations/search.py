"""Searches of entries and messages, and recall."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from ...items import Tokenizer
from ..conversation import Role
from ..entry import ContentType
from ..hits import MemorySearch, Recalled, TurnSearch
from .description import (
    Bound,
    Chance,
    Hits,
    Key,
    LocalOnly,
    Metadata,
    Name,
    Operation,
    OwnerId,
    Question,
    Route,
    Tags,
    Time,
    Tokens,
    Users,
)

DEFAULT_CUT = 0.4
"""The least relevance of a search whose hits are put into a prompt."""


@dataclass(frozen=True, kw_only=True)
class SearchFilters:
    """The filters of every search. All that are given must hold."""

    since: Annotated[Bound | None, "Only from this day, month, year or time on, in ISO 8601."] = None
    until: Annotated[Bound | None, "Only up to this day, month, year or time, in ISO 8601."] = None
    tags: Annotated[Tags | None, "Only what has all of these tags."] = None
    metadata: Annotated[Metadata | None, "Only what has equal values under these top-level keys."] = None
    role: Annotated[Role | None, "Only what a speaker of this role said; no system message is found."] = None
    name: Annotated[Name | None, "Only what the speaker of this name said."] = None


@dataclass(frozen=True, kw_only=True)
class RankedFilters(SearchFilters):
    """The filters of a search for hits."""

    limit: Annotated[Hits, "The most hits to return."] = 10
    min_score: Annotated[Chance | None, "Only hits with at least this chance."] = None
    min_relevance: Annotated[Chance | None, "No hits if `relevance` would be lower than this."] = None


@dataclass(frozen=True)
class SearchMemories(RankedFilters, Operation[MemorySearch]):
    """The entries that answer a question best, by words and by meaning, each with its evidence.

    Without an `agent_id`, the entries of all agents of the user are ranked together. `since` and `until`
    limit the time at which things happened or were learned. `tags` (all of them) and `metadata` (equal values
    under these keys) are those of the entry, or of a conversation that it was learned from. `role` and `name`
    are those of a speaker of its evidence. Hits with a lower chance than `min_score` are left out. If the
    chance that there is anything to say about the question is lower than `min_relevance`, there are no hits.
    `warnings` say if conversations are not learned yet, or texts have no vectors yet.
    """

    route = Route(
        "POST",
        "/v1/memories/search",
        "memories.search",
        "Search entries",
        is_search=True,
        always={"explain": True},
    )

    query: Annotated[Question, "A question or keywords."]
    agent_id: Annotated[OwnerId | None, "All agents of the user if absent."]
    user_id: OwnerId
    _: KW_ONLY
    content_type: Annotated[ContentType | None, "Only entries of this type."] = None
    as_of: Annotated[Time | None, "Search the entries as known at this time."] = None


@dataclass(frozen=True)
class SearchConversations(RankedFilters, Operation[TurnSearch]):
    """The messages that answer a question best, by words and by meaning.

    Without an `agent_id`, the messages to all agents of the user are ranked together. `tags` (all of them)
    and `metadata` (equal values under these keys) are those of the conversation. `role` and `name` are those
    of the speaker; a message without a name has its role as the name. `min_score` and `min_relevance` are
    those of the search of entries.
    """

    route = Route(
        "POST",
        "/v1/conversations/search",
        "conversations.search",
        "Search messages",
        is_search=True,
        always={"explain": True},
    )

    query: Annotated[Question, "A question or keywords."]
    agent_id: Annotated[OwnerId | None, "All agents of the user if absent."]
    user_id: OwnerId
    _: KW_ONLY
    session_id: Annotated[Key | None, "Only messages of this session."] = None


@dataclass(frozen=True)
class SearchMemoriesOfUsers(RankedFilters, Operation[MemorySearch]):
    """The entries of many users that answer a question best: of all users of the tenant, or of some.

    The filters and the scores are those of the search of one user, and each hit names its user. In a file, a
    search covers at most 50,000 entries; more are refused. PostgreSQL finds the entries by its indexes if
    they are more than 5,000, approximately, and `as_of` cannot be used then.
    """

    route = Route(
        "POST",
        "/v1/search/memories",
        "memories.search_users",
        "Search the entries of many users",
        scope="admin",
        is_search=True,
        always={"explain": True},
    )

    query: Annotated[Question, "A question or keywords."]
    user_ids: Annotated[Users | None, "All users of the tenant if absent."] = None
    _: KW_ONLY
    agent_id: Annotated[OwnerId | None, "All agents if absent."] = None
    content_type: Annotated[ContentType | None, "Only entries of this type."] = None
    as_of: Annotated[Time | None, "Search the entries as known at this time."] = None


@dataclass(frozen=True)
class SearchConversationsOfUsers(RankedFilters, Operation[TurnSearch]):
    """The messages of many users that answer a question best: of all users of the tenant, or of some.

    The filters and the scores are those of the search of one user, and each hit names its user. In a file, a
    search covers at most 50,000 messages; more are refused. PostgreSQL finds the messages by its indexes if
    they are more than 5,000, approximately.
    """

    route = Route(
        "POST",
        "/v1/search/conversations",
        "conversations.search_users",
        "Search the messages of many users",
        scope="admin",
        is_search=True,
        always={"explain": True},
    )

    query: Annotated[Question, "A question or keywords."]
    user_ids: Annotated[Users | None, "All users of the tenant if absent."] = None
    _: KW_ONLY
    agent_id: Annotated[OwnerId | None, "All agents if absent."] = None
    session_id: Annotated[Key | None, "Only messages of this session."] = None


@dataclass(frozen=True)
class Recall(SearchFilters, Operation[Recalled]):
    """The entries and messages about a question, as a block of at most `budget` tokens for a prompt.

    Without an `agent_id`, it covers all agents of the user. The block marks its contents as data, not
    instructions. It holds no entry and no message if there is nothing to say about the question: if the
    chance of that is lower than `min_relevance`. The filters are those of the searches. A message that an
    entry was learned from is left out, and a long message is quoted in part. Doubtful entries come last.

    Of lines that say something else of the same thing, only the newest is in the block. A question about
    the past also gets what held earlier, marked as such.

    The three newest standing instructions of the user are in every block, marked as the user's wishes,
    and further ones that are about the question, within a quarter of the budget and at most 200 tokens.
    """

    route = Route(
        "POST",
        "/v1/memories/recall",
        "memories.recall",
        "Recall for a prompt",
        is_search=True,
        always={"explain": True},
    )

    query: Annotated[Question, "A question or keywords."]
    agent_id: Annotated[OwnerId | None, "All agents of the user if absent."]
    user_id: OwnerId
    _: KW_ONLY
    budget: Annotated[Tokens, "The most tokens of the text."] = 1000
    tokenizer: Annotated[
        Tokenizer | None,
        "Counts the tokens of a text; an estimate if absent.",
        LocalOnly("a tokenizer (the service estimates the tokens)"),
    ] = None
    min_relevance: Annotated[
        Chance, "Nothing but standing instructions if less is likely to be about the query; 0 returns all."
    ] = DEFAULT_CUT
