"""Searches over many users of a tenant: who said, or of whom is known, what answers a question.

A search over documents that fit into memory ranks all of them, as that of one user does. Over more of them,
PostgreSQL finds candidates by its indexes, and these are ranked by the same functions, as a part of their
collection. A score is the chance that a hit is relevant, in both and for one user alike.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TypeVar

from ...errors import InvalidValueError
from ...sql.scripts import Row
from ..database import candidates, memories
from ..database.access import MemoryDatabase, column_now
from ..database.candidates import Scope
from ..database.dialect import POSTGRESQL
from ..database.overviews import MemoryOverview, overviews_from
from ..database.vector_queries import Kind
from ..database.vectors import turn_id
from ..hits import MemoryHit, MemorySearch, TurnHit, TurnSearch
from ..operations.search import SearchConversationsOfUsers, SearchMemoriesOfUsers
from ..search import Corpus
from ..search.background import Background
from ..search.filters import RequestedFilters, SearchFilter
from ..search.lookup import SearchResult
from ..texts.concepts import related_terms
from .cached_corpus import CachedCorpus
from .corpus_cache import CorpusCache
from .filters import FilterResolver
from .lookup import NO_LIMIT
from .recalling import Cut, newest_hits_first
from .search import MemorySearcher, Owners, filters_of

_MOST_HITS = 200
_MOST_IN_FILE = 50_000  # documents that a search compares where there is no index
_MOST_ON_SERVER = 5_000  # the same where there are indexes
_MOST_SAMPLES = 32
_SAMPLED_FOR = 600.0  # seconds for which a sample of a collection is used
_NO_INDEX = "there is no index for vectors of this dimension: all are compared"

_Hit = TypeVar("_Hit", MemoryHit, TurnHit)


@dataclass(frozen=True)
class Sample:
    """Random documents of a tenant, and how many it has."""

    corpus: Corpus
    documents: int
    until: float


class Samples:
    """The samples of the collections that were searched last. All tenants of a store share them."""

    def __init__(self, database: MemoryDatabase, corpora: CorpusCache) -> None:
        self._database = database
        self._corpora = corpora
        self._known: OrderedDict[tuple[Kind, str], Sample] = OrderedDict()

    async def of(self, kind: Kind, tenant: str) -> Sample:
        """The sample of the entries or the messages of a tenant, at most ten minutes old."""
        key = (kind, tenant)
        known = self._known.get(key)
        if known is None or known.until < monotonic():
            known = self._known[key] = await self._choose(kind, tenant)
        self._known.move_to_end(key)
        while len(self._known) > _MOST_SAMPLES:
            self._known.popitem(last=False)
        return known

    async def _choose(self, kind: Kind, tenant: str) -> Sample:
        sql, parameters, _ = candidates.count_up_to(kind, Scope(tenant), NO_LIMIT, self._database)
        rows = await self._database.fetch(sql, parameters, list[Row])
        documents = int(rows[0][0])
        sql, parameters, _ = candidates.sampled(kind, tenant, documents)
        rows = await self._database.fetch(sql, parameters, list[Row])
        corpus = await self._corpora.sample(kind, {tuple(row[:-1]): row[-1] for row in rows})
        return Sample(corpus, documents, monotonic() + _SAMPLED_FOR)


class UsersSearcher:
    """Searches the memories of many users of one tenant."""

    def __init__(
        self,
        database: MemoryDatabase,
        tenant: str,
        searcher: MemorySearcher,
        corpora: CorpusCache,
        samples: Samples,
    ) -> None:
        self._database = database
        self._tenant = tenant
        self._searcher = searcher
        self._corpora = corpora
        self._samples = samples
        self._filters = FilterResolver(database, tenant)
        self._has_indexes = database.dialect is POSTGRESQL

    async def search_memories(self, asked: SearchMemoriesOfUsers) -> MemorySearch:
        """The entries of many users that answer a question best."""
        cut, request, scope = _cut_of(asked), filters_of(asked), self._scope(asked)
        count = await self._count("entry", scope)
        if count <= self._most_compared:
            searched = await self._overviews(scope)
            found = await self._searcher.find_entries(
                asked.query, searched, asked.limit, request, asked.as_of, cut, _name(scope)
            )
        elif asked.as_of is not None:
            raise InvalidValueError("as_of cannot be used over so many entries: name fewer users")
        else:
            ranked = await self._find("entry", asked.query, scope, asked.limit, request, cut)
            owners = await self._owners_of(ranked)
            found = MemorySearch(
                await self._searcher.entries_of(ranked.hits, owners), ranked.warnings, ranked.relevance
            )
        return replace(found, hits=_newest_first_of_each(found.hits, asked.query))

    async def search_conversations(self, asked: SearchConversationsOfUsers) -> TurnSearch:
        """The messages of many users that answer a question best."""
        cut, request, scope = _cut_of(asked), filters_of(asked), self._scope(asked)
        count = await self._count("turn", scope)
        if count <= self._most_compared:
            searched = await self._overviews(scope)
            wanted = await self._filters.for_messages(request, [each.memory_id for each in searched])
            found = await self._searcher.find_turns(
                asked.query, searched, asked.limit, wanted, cut, _name(scope)
            )
            found = replace(found, warnings=(*wanted.warnings, *found.warnings))
        else:
            ranked = await self._find("turn", asked.query, scope, asked.limit, request, cut)
            found = TurnSearch(await self._searcher.turns_of(ranked.hits), ranked.warnings, ranked.relevance)
        return replace(found, hits=_newest_first_of_each(found.hits, asked.query))

    # --- what is searched ---

    def _scope(self, asked: SearchMemoriesOfUsers | SearchConversationsOfUsers) -> Scope:
        """The memories to search."""
        if asked.limit > _MOST_HITS:
            raise InvalidValueError(f"limit must be from 0 to {_MOST_HITS}, and it is {asked.limit}")
        if asked.user_ids is None:
            return Scope(self._tenant, asked.agent_id)
        keys = {memories.user_key(self._tenant, each) for each in asked.user_ids}
        return Scope(self._tenant, asked.agent_id, tuple(sorted(keys)))

    @property
    def _most_compared(self) -> int:
        return _MOST_ON_SERVER if self._has_indexes else _MOST_IN_FILE

    async def _count(self, kind: Kind, scope: Scope) -> int:
        """How many documents a search covers, counted until they are too many to compare all of them."""
        most = self._most_compared
        sql, parameters, _ = candidates.count_up_to(kind, scope, most + 1, self._database)
        rows = await self._database.fetch(sql, parameters, list[Row])
        count = int(rows[0][0])
        if count > most and not self._has_indexes:
            what = "entries" if kind == "entry" else "messages"
            raise InvalidValueError(
                f"a search in a file covers at most {most} {what}:"
                " name fewer users or an agent, or use PostgreSQL"
            )
        return count

    async def _overviews(self, scope: Scope) -> list[MemoryOverview]:
        parameters = (scope.tenant, column_now(), *scope.parameters)
        return await self._database.fetch(self._database.overviews.of_scope, parameters, overviews_from)

    # --- candidates ---

    async def _find(
        self, kind: Kind, query: str, scope: Scope, limit: int, request: RequestedFilters, cut: Cut
    ) -> SearchResult:
        """The best of the candidates, ranked as a part of all documents of the tenant."""
        prepared = await self._searcher.prepare(query, ())
        sample = await self._samples.of(kind, scope.tenant)
        terms = _with_related(prepared.query.terms)
        found = await self._database.write(
            partial(
                candidates.find,
                kind,
                scope,
                request,
                terms,
                prepared.vector,
                self._searcher.model,
                sample.documents,
            )
        )
        corpus = await self._corpora.candidates(kind, found.memories)
        corpus.background = Background(sample.documents, sample.corpus, found.counted)
        wanted = SearchFilter()
        if request != RequestedFilters():  # what is beside a message need not match
            ids = frozenset(key[0] if kind == "entry" else turn_id(*key) for key in found.memories)
            wanted = SearchFilter(request.since, request.until, request.content_type, ids=ids)
        ranked = cut.apply(await self._searcher.rank_corpus(query, CachedCorpus(corpus), limit, wanted))
        warnings = ranked.warnings if found.is_indexed else (_NO_INDEX, *ranked.warnings)
        return replace(ranked, warnings=warnings)

    async def _owners_of(self, ranked: SearchResult) -> Owners:
        """The agents and users of the entries of hits."""
        ids = json.dumps([hit.id for hit in ranked.hits])
        rows = await self._database.fetch(
            self._database.overviews.owners_of_entries, (self._tenant, ids), list[Row]
        )
        return {memory_id: (agent_id, user_id) for memory_id, agent_id, user_id in rows}


def _cut_of(asked: SearchMemoriesOfUsers | SearchConversationsOfUsers) -> Cut:
    return Cut.of(asked.min_score, asked.min_relevance)


def _name(scope: Scope) -> str:
    """The name of the corpus of a scope, which no other tenant has."""
    return json.dumps([scope.tenant, *scope.parameters])


def _with_related(terms: Sequence[str]) -> list[str]:
    """Terms, and then those about the same things."""
    related = (each for term in terms for each in related_terms(term))
    return list(dict.fromkeys((*terms, *related)))


def _newest_first_of_each(hits: Sequence[_Hit], query: str) -> tuple[_Hit, ...]:
    """Hits of which the newest of each user leads among those that say something else of the same thing."""
    ordered = list(hits)
    for user_id in {hit.user_id for hit in hits}:
        places = [place for place, hit in enumerate(hits) if hit.user_id == user_id]
        newest = newest_hits_first([hits[place] for place in places], query)
        for place, hit in zip(places, newest, strict=True):
            ordered[place] = hit
    return tuple(ordered)
