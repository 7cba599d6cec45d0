"""A corpus with the state that it was read from, for use by several tasks and threads."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ..search.corpus import Corpus
from ..search.corpus import Key as DocumentKey
from ..search.optimizing import is_large, next_to_optimize

T = TypeVar("T")
Stamps = dict[str, int]
"""The ids of memories, each with the number that changes with its entries, or with its turns."""

_MANY = 500  # documents: building more at once would block the event loop for too long
_LARGE = 3000  # documents of a corpus: changing a larger one would block the event loop for too long


@dataclass
class CachedCorpus:
    """A corpus, with the stamps that it was read at."""

    corpus: Corpus = field(default_factory=Corpus)
    stamps: Stamps | None = None
    """The stamps of its memories; `None` until it is read."""
    marks: dict[str, str] = field(default_factory=dict)
    """The marks of its entries, by their ids."""
    counts: dict[str, int] = field(default_factory=dict)
    """How many records of messages were read of each memory."""
    unread: set[DocumentKey] = field(default_factory=set)
    """Messages that are not in the corpus yet: their records are still to be made."""
    size: int = 0
    """Its approximate size in bytes."""
    refreshing: Future[None] | None = None
    """The refresh in progress, for which other callers wait."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the corpus is read or changed, since a corpus is not thread-safe."""
    is_optimizing: bool = False

    async def use(self, work: Callable[[], T], in_thread: bool = False) -> T:
        """Run some work on the corpus under its lock, and return its result.

        The work runs in a thread if the lock is taken or `in_thread` is set, so the event loop never blocks.
        """
        if not in_thread and self.lock.acquire(blocking=False):
            try:
                return work()
            finally:
                self.lock.release()
        return await asyncio.to_thread(self._use, work)

    def _use(self, work: Callable[[], T]) -> T:
        with self.lock:
            return work()

    def optimize_later(self) -> None:
        """Sort the postings of a large corpus in a thread, so that the next searches are faster."""
        if not self.is_optimizing and is_large(self.corpus):
            self.is_optimizing = True
            threading.Thread(target=self._optimize, name="recollect-corpus", daemon=True).start()

    def _optimize(self) -> None:
        """Take a piece under the lock, sort it without, and put it back under the lock."""
        try:
            while (piece := self._use(partial(next_to_optimize, self.corpus))) is not None:
                self._use(partial(piece.optimize(), self.corpus))
        finally:
            self.is_optimizing = False


def takes_long(cached: CachedCorpus, changed: int) -> bool:
    """Whether a change of so many documents would block the event loop."""
    return changed > _MANY or len(cached.corpus) > _LARGE


async def run_off_loop(count: int, work: Callable[[], T]) -> T:
    """Run work on `count` items and return its result, in a thread if it would block the event loop."""
    return await asyncio.to_thread(work) if count > _MANY else work()
