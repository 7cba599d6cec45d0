"""A run goes on without memory: what goes wrong there is logged, by its type alone, and ends no run."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from ...errors import RecollectError
from ...strategies.summaries import inject_memory

T = TypeVar("T")

logger = logging.getLogger(__name__)

DEFAULT_PATIENCE = 5.0
"""Seconds that a run waits for memory."""


def check_budget(token_budget: int) -> None:
    """Refuse at once what would make every recall fail later."""
    inject_memory(None, token_budget=token_budget)


async def or_nothing(doing: str, asked: Awaitable[T], patience: float = DEFAULT_PATIENCE) -> T | None:
    """What memory answers, or `None` with a warning if it fails or takes too long."""
    try:
        async with asyncio.timeout(patience):
            return await asked
    except (RecollectError, OSError, TimeoutError) as error:
        # Its own words may quote what it is about.
        logger.warning("%s failed (%s); the run goes on without it", doing, type(error).__name__)
        return None
