"""Reads pages about users. A page is composed from the entries. It is not stored."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from ...sessions.settings import check_limit
from ...sql.columns import check_id
from ...sql.scripts import Row
from ..database import memories
from ..database.access import MemoryDatabase
from ..entry import Entry
from ..lifetime import doubtful_from
from ..page import DEFAULT_BUDGET, UserPage, check_budget, compose_page, next_change
from ..times import now, read_time
from .entries import EntryRepository
from .lookup import MemoryLookup

_MANY = 1000  # entries: composing a page of more would block the event loop for too long
_MOST_CACHED = 1000  # pages

PlacedEntry = tuple[int, Entry]
_Key = tuple[str, int, datetime | None]
"""The memory, the budget, and the time of a past page."""


class _CachedPage(NamedTuple):
    stamp: int
    until: datetime | None
    """When an entry expires or becomes doubtful."""
    page: UserPage


class PageCache:
    """The pages that were read last, by the memory and the rest of the request. All tenants share it."""

    def __init__(self) -> None:
        self._pages: OrderedDict[_Key, _CachedPage] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: _Key, stamp: int) -> UserPage | None:
        """The page of a memory whose entries have this stamp; `None` if it is not cached, or outdated."""
        with self._lock:
            cached = self._pages.get(key)
            if cached is None or cached.stamp != stamp:
                return None
            if cached.until is not None and cached.until <= now():
                return None
            self._pages.move_to_end(key)
            return cached.page

    def add(self, key: _Key, cached: _CachedPage) -> None:
        """Keep a page. The least recently read one is dropped."""
        with self._lock:
            self._pages[key] = cached
            self._pages.move_to_end(key)
            if len(self._pages) > _MOST_CACHED:
                self._pages.popitem(last=False)

    def forget(self, memory_id: str) -> None:
        """Drop the pages of a memory."""
        with self._lock:
            for key in [key for key in self._pages if key[0] == memory_id]:
                del self._pages[key]


class PageReader:
    """The pages of one tenant."""

    def __init__(
        self, database: MemoryDatabase, lookup: MemoryLookup, entries: EntryRepository, cache: PageCache
    ) -> None:
        self._database = database
        self._lookup = lookup
        self._entries = entries
        self._cache = cache

    async def page(
        self,
        agent_id: str,
        user_id: str,
        *,
        budget: int = DEFAULT_BUDGET,
        as_of: datetime | str | None = None,
    ) -> UserPage:
        """What an agent knows about a user, on a page of at most `budget` tokens, now or as of a time.

        The same entries give the same bytes, and a line keeps its place. The page is empty if nothing is
        known. A past page has what was known then. Erased facts are not on it, and the trust in an entry
        counts all that is known today.
        """
        check_budget(budget)
        time = read_time("as_of", as_of)
        found = await self._find(agent_id, user_id)
        if found is None:
            return compose_page(agent_id, user_id, (), now(), budget=budget, as_of=time)
        memory_id, stamp = found
        key = (memory_id, budget, time)
        cached = self._cache.find(key, stamp)
        if cached is not None:
            return cached
        at = time or now()
        entries = await self._read(memory_id, time)
        page = await _in_thread_if_many(
            len(entries), partial(compose_page, agent_id, user_id, entries, at, budget=budget, as_of=time)
        )
        # Of the past, nothing expires any more.
        until = next_change((entry for _, entry in entries), at) if time is None else None
        if time is None or time <= now():
            self._cache.add(key, _CachedPage(stamp, until, page))
        return page

    async def page_history(
        self, agent_id: str, user_id: str, *, budget: int = DEFAULT_BUDGET, limit: int = 20
    ) -> list[UserPage]:
        """The newest versions of a page, the latest first, each `as_of` the time from which it held.

        They are composed anew from the entries, so an erased fact is in none of them.
        """
        check_budget(budget)
        most = check_limit(limit) or 0
        found = await self._find(agent_id, user_id)
        if found is None:
            return []
        entries = await self._read(found[0], None, include_retired=True)
        compose = partial(_compose_history, agent_id, user_id, entries, budget, most)
        return await asyncio.to_thread(compose)

    async def _find(self, agent_id: str, user_id: str) -> tuple[str, int] | None:
        """The id of a memory and the stamp of its entries. The stamp is read first: entries may be newer."""
        owner = (check_id("agent_id", agent_id), check_id("user_id", user_id))
        key = memories.owner_key(self._lookup.tenant, *owner)
        rows = await self._database.fetch(memories.STAMP, (key,), list[Row])
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    async def _read(
        self, memory_id: str, time: datetime | None, include_retired: bool = False
    ) -> list[PlacedEntry]:
        found = await self._entries.read_page(memory_id, time, include_retired)
        cited = await self._database.with_evidence([entry for _, entry in found])
        return [(place, entry) for (place, _), entry in zip(found, cited, strict=True)]


def _compose_history(
    agent_id: str, user_id: str, entries: Sequence[PlacedEntry], budget: int, limit: int
) -> list[UserPage]:
    pages: list[UserPage] = []
    for time in sorted(_times_of(entries), reverse=True):
        known = [(place, entry) for place, entry in entries if _is_known(entry, time)]
        page = compose_page(agent_id, user_id, known, time, budget=budget, as_of=time)
        if pages and pages[-1].version == page.version:
            pages[-1] = page  # the same page, since an earlier time
        elif len(pages) == limit:
            break
        else:
            pages.append(page)
    return pages


def _times_of(entries: Sequence[PlacedEntry]) -> set[datetime]:
    """The times at which a page may have changed."""
    latest = now()
    times = {
        time
        for _, entry in entries
        for time in (entry.learned_at, entry.retired_at, entry.expires_at, doubtful_from(entry))
    }
    return {time for time in times if time is not None and time <= latest}


def _is_known(entry: Entry, time: datetime) -> bool:
    """Whether an entry was current at a time, as in the statement that reads the past."""
    return entry.learned_at <= time and (entry.retired_at is None or entry.retired_at > time)


async def _in_thread_if_many(count: int, compose: "partial[UserPage]") -> UserPage:
    return await asyncio.to_thread(compose) if count > _MANY else compose()
