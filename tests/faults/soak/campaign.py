"""The long form of the soak."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from ..account import Account, Plan
from . import on_service, on_sessions

PART = "soak"
Do: TypeAlias = Callable[[Account, Path, int], None]


def _service_sqlite(account: Account, folder: Path, operations: int) -> None:
    asyncio.run(on_service.soak_sqlite(account, folder, operations))


def _service_postgresql(account: Account, folder: Path, operations: int) -> None:
    asyncio.run(on_service.soak_postgresql(account, folder, operations))


_PLACES: dict[str, tuple[Do, float]] = {
    "sessions-sqlite": (on_sessions.soak, 0.8),
    "service-sqlite": (_service_sqlite, 0.1),
    "service-postgresql": (_service_postgresql, 0.1),
}
"""What is done, and its part of the operations: a call of a session takes far less than a request."""


def run(plan: Plan) -> Iterator[Account]:
    """Keep each place under traffic, for its part of the operations."""
    places = plan.chosen(_PLACES)
    return (_run_at(place, plan) for place in places)


def _run_at(place: str, plan: Plan) -> Account:
    do, part = _PLACES[place]
    account = Account(PART, place, seeds=[plan.seed])
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        do(account, Path(folder), int(plan.operations * part))
    account.seconds = time.monotonic() - began
    account.findings = [f"{finding} ({plan.command(PART, place)})" for finding in account.findings]
    return account
