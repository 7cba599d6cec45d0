"""Turns the filters of a search into the conversations and entries that may be found."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..database import conversations, labels
from ..database.access import MemoryDatabase
from ..database.labels import Labels
from ..search.filters import RequestedFilters, SearchFilter, labels_match

_NO_KEY = "no {} of the user has the metadata key {!r}: nothing is found"
_NO_TAG = "no {} of the user has the tag {!r}: nothing is found"


@dataclass(frozen=True)
class ResolvedFilter:
    """A filter for documents, and warnings about tags and keys that nothing has."""

    filter: SearchFilter
    warnings: tuple[str, ...] = ()


class FilterResolver:
    """Looks filters up in the database. It reads only the memories that it is given."""

    def __init__(self, database: MemoryDatabase, tenant: str) -> None:
        self._database = database
        self._tenant = tenant

    async def for_messages(self, request: RequestedFilters, memory_ids: Sequence[str]) -> ResolvedFilter:
        """The filter for the messages of some memories."""
        sessions: set[str] | None = None
        warnings: tuple[str, ...] = ()
        if request.session_id is not None:
            sessions = await self._of_session(request.session_id, memory_ids)
        if request.has_labels:
            found = await self._conversation_labels(memory_ids)
            warnings = _warn_of_unknown(request, found, "conversation")
            sessions = _both(sessions, _matching(request, found))
        return ResolvedFilter(
            SearchFilter(
                request.since,
                request.until,
                role=request.role,
                speaker=request.name,
                sessions=None if sessions is None else frozenset(sessions),
            ),
            warnings,
        )

    async def for_entries(self, request: RequestedFilters, memory_ids: Sequence[str]) -> ResolvedFilter:
        """The filter for the entries of some memories.

        An entry has the tags and metadata that it was given, or those of a conversation it was learned from.
        Its speakers are those of its evidence.
        """
        ids: set[str] | None = None
        warnings: tuple[str, ...] = ()
        if request.has_labels:
            own, said = await self._entry_labels(memory_ids), await self._conversation_labels(memory_ids)
            warnings = _warn_of_unknown(request, [*own, *said], "conversation or entry")
            ids = _matching(request, own) | await self._learned_from(_matching(request, said))
        if request.has_speaker:
            ids = _both(ids, await self._said_by(request, memory_ids))
        return ResolvedFilter(
            SearchFilter(
                request.since,
                request.until,
                request.content_type,
                ids=None if ids is None else frozenset(ids),
            ),
            warnings,
        )

    async def _of_session(self, session_id: str, memory_ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for memory_id in memory_ids:
            key = (memory_id, session_id)
            found |= await self._database.fetch(conversations.OF_SESSION, key, labels.ids_from)
        return found

    async def _conversation_labels(self, memory_ids: Sequence[str]) -> list[Labels]:
        query, decode = labels.OF_CONVERSATIONS, labels.conversation_labels_from
        pages = [await self._database.fetch(query, (each,), decode) for each in memory_ids]
        return [found for page in pages for found in page]

    async def _entry_labels(self, memory_ids: Sequence[str]) -> list[Labels]:
        query, decode = labels.OF_ENTRIES, labels.entry_labels_from
        pages = [await self._database.fetch(query, (each,), decode) for each in memory_ids]
        return [found for page in pages for found in page]

    async def _learned_from(self, conversation_ids: Iterable[str]) -> set[str]:
        key = (self._tenant, json.dumps(sorted(conversation_ids)))
        return await self._database.fetch(self._database.labels.learned_from, key, labels.ids_from)

    async def _said_by(self, request: RequestedFilters, memory_ids: Sequence[str]) -> set[str]:
        query, found = self._database.labels.said_by, set[str]()
        for memory_id in memory_ids:
            key = (memory_id, request.role or "", request.name or "")
            found |= await self._database.fetch(query, key, labels.ids_from)
        return found


def _matching(request: RequestedFilters, found: Iterable[Labels]) -> set[str]:
    return {each.id for each in found if labels_match(request, each.tags, each.metadata)}


def _both(one: set[str] | None, other: set[str]) -> set[str]:
    """The ids that are in both sets; `None` has all ids."""
    return other if one is None else one & other


def _warn_of_unknown(request: RequestedFilters, found: Sequence[Labels], what: str) -> tuple[str, ...]:
    """A warning for each tag and each key that nothing has: a filter by it can find nothing."""
    keys = {key for each in found for key in each.metadata}
    tags = {tag for each in found for tag in each.tags}
    return (
        *(_NO_KEY.format(what, key) for key in request.metadata if key not in keys),
        *(_NO_TAG.format(what, tag) for tag in request.tags if tag not in tags),
    )
