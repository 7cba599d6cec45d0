"""Calls to memory that cannot end a run: a failure is logged by its type, and the run goes on."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from ..errors import RecollectError
from ..strategies.summaries import inject_memory

T = TypeVar("T")

logger = logging.getLogger(__name__)

DEFAULT_PATIENCE = 5.0
"""How many seconds a run waits for memory."""


def check_budget(token_budget: int) -> None:
    """Raise an error now for a token budget that would make every recall fail later."""
    inject_memory(None, token_budget=token_budget)


async def result_or_none(action: str, call: Awaitable[T], patience: float = DEFAULT_PATIENCE) -> T | None:
    """The result of a call to memory; `None` and a warning if it fails or takes too long."""
    try:
        async with asyncio.timeout(patience):
            return await call
    except (RecollectError, OSError, TimeoutError) as error:
        # The message of the error may quote contents.
        logger.warning("%s failed (%s); the run goes on without it", action, type(error).__name__)
        return None
