"""Turns the filters of a search into the conversations and entries that may be found."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from ...sql.description import Table
from ..database import labels
from ..database.access import MemoryDatabase
from ..database.labels import LabelMatches
from ..database.schema import CONTENTS, CONVERSATIONS
from ..search.filters import RequestedFilters, SearchFilter

_NO_KEY = "no {} of the user has the metadata key {!r}: nothing is found"
_NO_TAG = "no {} of the user has the tag {!r}: nothing is found"


@dataclass(frozen=True)
class ResolvedFilter:
    """A filter for documents, and warnings about tags and keys that nothing has."""

    filter: SearchFilter
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Labelled:
    """The conversations or entries with the wanted tags, and those with the wanted metadata."""

    tags: LabelMatches | None
    metadata: LabelMatches | None
    """`None` if no metadata is wanted."""

    @property
    def ids(self) -> frozenset[str]:
        """Those that have both."""
        wanted = [each.ids for each in (self.tags, self.metadata) if each is not None]
        return frozenset.intersection(*wanted)


class FilterResolver:
    """Looks filters up in the database. It reads only the memories that it is given."""

    def __init__(self, database: MemoryDatabase, tenant: str) -> None:
        self._database = database
        self._tenant = tenant

    async def for_messages(self, request: RequestedFilters, memory_ids: Sequence[str]) -> ResolvedFilter:
        """The filter for the messages of some memories."""
        sessions: frozenset[str] | None = None
        warnings: tuple[str, ...] = ()
        if request.session_id is not None:
            sessions = await self._of_session(request.session_id, memory_ids)
        if request.has_labels:
            found = await self._labelled(CONVERSATIONS, request, memory_ids)
            warnings = _warn_of_unknown(request, [found], "conversation")
            sessions = _both(sessions, found.ids)
        conditions = SearchFilter(
            request.since, request.until, role=request.role, speaker=request.name, sessions=sessions
        )
        return ResolvedFilter(conditions, warnings)

    async def for_entries(self, request: RequestedFilters, memory_ids: Sequence[str]) -> ResolvedFilter:
        """The filter for the entries of some memories.

        An entry has the tags and metadata that it was given, or those of a conversation it was learned from.
        Its speakers are those of its evidence.
        """
        ids: frozenset[str] | None = None
        warnings: tuple[str, ...] = ()
        if request.has_labels:
            own = await self._labelled(CONTENTS, request, memory_ids)
            said = await self._labelled(CONVERSATIONS, request, memory_ids)
            warnings = _warn_of_unknown(request, [own, said], "conversation or entry")
            ids = own.ids | await self._learned_from(said.ids)
        if request.has_speaker:
            ids = _both(ids, await self._said_by(request, memory_ids))
        return ResolvedFilter(
            SearchFilter(request.since, request.until, request.content_type, ids=ids), warnings
        )

    async def _labelled(
        self, table: Table, request: RequestedFilters, memory_ids: Sequence[str]
    ) -> _Labelled:
        queries, memories = self._database.labels, (json.dumps(list(memory_ids)),)
        tags = metadata = None
        if request.tags:
            match = partial(labels.match_tags, table.name, frozenset(request.tags))
            tags = await self._database.fetch(queries.read_tags(table), memories, match)
        if request.metadata:
            find = partial(labels.match_metadata, table.name, request.metadata)
            metadata = await self._database.fetch(queries.read_metadata(table), memories, find)
        return _Labelled(tags, metadata)

    async def _of_session(self, session_id: str, memory_ids: Sequence[str]) -> frozenset[str]:
        key = (json.dumps(list(memory_ids)), session_id)
        return await self._database.fetch(self._database.labels.of_session, key, labels.ids_from)

    async def _learned_from(self, conversation_ids: Iterable[str]) -> frozenset[str]:
        key = (self._tenant, json.dumps(sorted(conversation_ids)))
        return await self._database.fetch(self._database.labels.learned_from, key, labels.ids_from)

    async def _said_by(self, request: RequestedFilters, memory_ids: Sequence[str]) -> frozenset[str]:
        key = (json.dumps(list(memory_ids)), request.role or "", request.name or "")
        return await self._database.fetch(self._database.labels.said_by, key, labels.ids_from)


def _both(one: frozenset[str] | None, other: frozenset[str]) -> frozenset[str]:
    """The ids that are in both sets; `None` has all ids."""
    return other if one is None else one & other


def _warn_of_unknown(request: RequestedFilters, found: Sequence[_Labelled], what: str) -> tuple[str, ...]:
    """A warning for each tag and each key that nothing has: a filter by it can find nothing."""
    keys = {key for each in found if each.metadata is not None for key in each.metadata.known}
    tags = {tag for each in found if each.tags is not None for tag in each.tags.known}
    return (
        *(_NO_KEY.format(what, key) for key in request.metadata if key not in keys),
        *(_NO_TAG.format(what, tag) for tag in request.tags if tag not in tags),
    )
