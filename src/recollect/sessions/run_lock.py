"""A lock for one run at a time on a session, across tasks, threads and processes.

The lock is advisory: it holds only among callers that use it.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..cancellation import finish_despite_cancellation
from ..errors import RecollectError, RunLockTimeoutError
from ..ids import new_hex
from .protocol import Leasable, Session, require_ability

logger = logging.getLogger(__name__)

_FIRST_WAIT = 0.005
_LONGEST_WAIT = 0.1


@asynccontextmanager
async def run_lock(
    session: Session, *, timeout: float | None = None, lease: float = 30.0
) -> AsyncIterator[None]:
    """Lock a session for one run: `async with run_lock(session): await Runner.run(…)`.

    Waits while another run holds the lock. With `timeout`, raises `RunLockTimeoutError` after so many
    seconds.

    The lock is a lease. It is renewed while the block runs. If the process dies, the lease expires after at
    most `lease` seconds. A process that hangs for longer loses the lease, and another run may start beside
    it. The lease belongs to the run and not to the history: a run that clears its session still holds it.
    """
    if not lease > 0:
        raise ValueError(f"lease must be more than 0 seconds, not {lease}")
    leasable = require_ability(session, Leasable)
    owner = new_hex()
    renewal = None
    try:
        await _acquire(leasable, session.session_id, owner, lease, timeout)
        renewal = asyncio.create_task(_renew(leasable, owner, lease))
        yield
    finally:
        # Also if a cancellation interrupted taking the lease: the lease may have been taken nevertheless.
        if renewal is not None:
            renewal.cancel()
        await finish_despite_cancellation(_release(leasable, owner))


async def _release(leasable: Leasable, owner: str) -> None:
    """Release the lease. A failure is only logged: the lease expires, and the run keeps its own result."""
    try:
        await leasable.drop_lease(owner)
    except (RecollectError, OSError) as error:
        logger.warning("run lock not released (%s); it expires with its lease", type(error).__name__)


async def _acquire(
    leasable: Leasable, session_id: str, owner: str, lease: float, timeout: float | None
) -> None:
    deadline = None if timeout is None else time.monotonic() + timeout
    wait = _FIRST_WAIT
    while not await leasable.take_lease(owner, lease):
        if deadline is not None and time.monotonic() >= deadline:
            raise RunLockTimeoutError(session_id, timeout or 0)
        await asyncio.sleep(random.uniform(wait / 2, wait))
        wait = min(wait * 1.5, _LONGEST_WAIT)


async def _renew(leasable: Leasable, owner: str, lease: float) -> None:
    while True:
        await asyncio.sleep(lease / 3)
        try:
            if not await leasable.take_lease(owner, lease):
                logger.warning("run lock lost: its lease expired before it was renewed")
                return
        except (RecollectError, OSError) as error:
            logger.warning("run lock not renewed (%s), retrying", type(error).__name__)
