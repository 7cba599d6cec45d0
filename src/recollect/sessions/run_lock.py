"""One run at a time on a session, across tasks, threads and processes, for those who ask for it."""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..cancellation import finish_despite_cancellation
from ..errors import RecollectError, RunLockTimeoutError
from .protocol import Leasable, Session, require_ability

logger = logging.getLogger(__name__)

_FIRST_WAIT = 0.005
_LONGEST_WAIT = 0.1


@asynccontextmanager
async def run_lock(
    session: Session, *, timeout: float | None = None, lease: float = 30.0
) -> AsyncIterator[None]:
    """Hold a session for one run: `async with run_lock(session): await Runner.run(…)`.

    Others who ask for the lock wait, at most `timeout` seconds if given. The lock is a lease that is renewed
    while the block runs: if the process dies, it is free again after at most `lease` seconds. A process that
    hangs for longer than that loses it, and another run may begin beside it. It belongs to the run and not to
    the history: a run that clears its session still holds it.
    """
    if not lease > 0:
        raise ValueError(f"lease must be more than 0 seconds, and it is {lease}")
    leasable = require_ability(session, Leasable)
    owner = uuid.uuid4().hex
    renewal = None
    try:
        await _take(leasable, session.session_id, owner, lease, timeout)
        renewal = asyncio.create_task(_renew(leasable, owner, lease))
        yield
    finally:
        # Also after a cancellation that met the taking of the lease, which may have happened.
        if renewal is not None:
            renewal.cancel()
        await finish_despite_cancellation(_drop(leasable, owner))


async def _drop(leasable: Leasable, owner: str) -> None:
    """Give the lease up; if that fails, it runs out by itself, and the run has its own result or error."""
    try:
        await leasable.drop_lease(owner)
    except (RecollectError, OSError) as error:
        logger.warning("a run lock could not be given up (%s) and will run out", type(error).__name__)


async def _take(leasable: Leasable, session_id: str, owner: str, lease: float, timeout: float | None) -> None:
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
                logger.warning("a run lock was lost: its lease ran out before it was renewed")
                return
        except (RecollectError, OSError) as error:
            logger.warning("a run lock could not be renewed (%s), trying again", type(error).__name__)
