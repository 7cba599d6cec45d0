"""The long form: many callers in several processes on each backend, and every history checked."""

import tempfile
import time
from pathlib import Path

from ..account import Account, Plan
from .callers import Callers, Crowd, Target
from .checker import check
from .history import Operation
from .places import PLACES, server_of

PART = "linearizability"
_CROWD = Crowd()


def run(plan: Plan) -> list[Account]:
    """Check so many operations, shared out among the places."""
    shares = {place: _share(place) for place in PLACES if plan.only in (None, place)}
    each = plan.operations // max(sum(shares.values()), 1)
    return [_run_at(place, plan.seed, share * each) for place, share in shares.items()]


def _share(place: str) -> int:
    """PostgreSQL gets half as many as the others: each commit there takes a while."""
    return 1 if "postgresql" in place else 2


def _run_at(place: str, seed: int, operations: int) -> Account:
    began = time.monotonic()
    rounds = max(-(-operations // _CROWD.round), 1)
    with (
        tempfile.TemporaryDirectory() as folder,
        server_of(place, Path(folder)) as url,
        Callers(_CROWD) as callers,
    ):
        account = prove(callers, Target(place, url, seed), rounds)
    account.seconds = time.monotonic() - began
    return account


def prove(callers: Callers, target: Target, rounds: int) -> Account:
    """Have sessions called, and tell what was checked and found."""
    account = Account(PART, target.place, seeds=[target.seed])
    for number, histories in enumerate(callers.histories(target, rounds)):
        for place, history in enumerate(histories):
            _enter(account, f"session {place} of round {number}", history)
    return account


def _enter(account: Account, name: str, history: list[Operation]) -> None:
    verdict = check(history)
    if verdict.decided:
        account.operations.update(_told(each) for each in history)
        account.measures["histories"] = account.measures.get("histories", 0) + 1
    if not verdict.linearizable:
        replay = f"python -m tests.faults {PART} --only {account.place} --seed {account.seeds[0]}"
        account.findings.append(f"{account.place}, {name}: {verdict} ({replay})")


def _told(operation: Operation) -> str:
    return operation.kind if operation.is_known else f"{operation.kind}, cancelled"
