"""The long form: many callers in several processes on each backend, and every history checked."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..account import Account, Plan
from .callers import Callers, Crowd, Target
from .checker import check
from .history import Operation
from .places import PLACES, server_of

PART = "linearizability"
_CROWD = Crowd()


def run(plan: Plan) -> Iterator[Account]:
    """Check so many operations, shared out among the places."""
    shares = {place: _share(place) for place in plan.chosen(PLACES)}
    each = plan.operations // sum(shares.values())
    return (_run_at(place, replace(plan, operations=share * each)) for place, share in shares.items())


def _share(place: str) -> int:
    """PostgreSQL gets half as many as the others: each commit there takes a while."""
    return 1 if "postgresql" in place else 2


def _run_at(place: str, plan: Plan) -> Account:
    began = time.monotonic()
    rounds = max(-(-plan.operations // _CROWD.round), 1)
    with (
        tempfile.TemporaryDirectory() as folder,
        server_of(place, Path(folder)) as url,
        Callers(_CROWD) as callers,
    ):
        account = prove(callers, Target(place, url, plan.seed), rounds)
    account.seconds = time.monotonic() - began
    account.findings = [f"{finding} ({plan.command(PART, place)})" for finding in account.findings]
    return account


def prove(callers: Callers, target: Target, rounds: int) -> Account:
    """Have sessions called, and tell what was checked and found."""
    account = Account(PART, target.place, seeds=[target.seed])
    for number, histories in enumerate(callers.histories(target, rounds)):
        for place, history in enumerate(histories):
            enter(account, f"session {place} of round {number}", history)
    return account


def enter(account: Account, name: str, history: list[Operation]) -> None:
    """Check a history, and enter how much of it that was."""
    verdict = check(history)
    if verdict.decided:
        account.operations.update(_told(each) for each in history if _is_checked(each))
        account.measures["histories"] = account.measures.get("histories", 0) + 1
    account.faults.update("calls cancelled" for each in history if not each.is_known)
    if not verdict.linearizable:
        account.findings.append(f"{account.place}, {name}: {verdict}")


def _is_checked(operation: Operation) -> bool:
    """A read that nobody saw the answer of says nothing; a write may be seen by others."""
    return operation.is_known or operation.kind != "get"


def _told(operation: Operation) -> str:
    return operation.kind if operation.is_known else f"{operation.kind}, cancelled"
