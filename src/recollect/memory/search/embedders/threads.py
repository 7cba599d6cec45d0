"""Threads for embedding: others wait for nothing where an embedder hangs."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

_MOST = 4


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of the threads
    return ThreadPoolExecutor(_MOST, thread_name_prefix="recollect-embedding")


async def in_embedding_thread(work: Callable[[], T]) -> T:
    """The outcome of some work, while the event loop goes on."""
    return await asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), work)
