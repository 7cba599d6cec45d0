"""The long form of the soak."""

import asyncio
import tempfile
import time
from collections.abc import Callable
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


def run(plan: Plan) -> list[Account]:
    """Keep each place under traffic, for its part of the operations."""
    if plan.only not in (None, *_PLACES):
        raise ValueError(f"there is no place {plan.only}, only {', '.join(_PLACES)}")
    return [_run_at(place, plan) for place in _PLACES if plan.only in (None, place)]


def _run_at(place: str, plan: Plan) -> Account:
    do, part = _PLACES[place]
    account = Account(PART, place, seeds=[plan.seed])
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        do(account, Path(folder), int(plan.operations * part))
    account.seconds = time.monotonic() - began
    numbers = f"--seed {plan.seed} --operations {plan.operations} --faults {plan.faults}"
    replay = f"python -m tests.faults {PART} {numbers} --only {place}"
    account.findings = [f"{finding} ({replay})" for finding in account.findings]
    return account
