"""Sessions under faults, place by place: the long form."""

import math
import time
from collections.abc import Iterator

from ..account import Account, Plan
from .arenas import Server, Servers, arenas_of
from .clients import RoundPlan
from .places import PLACES, Place
from .rounds import Report, run_round

_ROUND = 10_000  # calls of a round; half of it where sessions rest after a lost connection
_SHORT = 1_000  # a round of so many is done by few
_MANY, _FEW = (12, 5), (4, 2)  # tasks of a client, and sessions of each
_WHOLE = 700_000, 700  # calls and faults of the long form, as the places share them


def run(plan: Plan) -> list[Account]:
    """Do what is planned in all places, or in the only one."""
    with Servers() as servers:
        return [
            run_place(place, plan, servers.of(place)) for place in PLACES if plan.only in (None, place.name)
        ]


def run_place(place: Place, plan: Plan, server: Server | None) -> Account:
    """Do what is planned for one place."""
    account = Account("sessions", place.name, seeds=[plan.seed])
    started = time.monotonic()
    with arenas_of(place, server) as arenas:
        for number, round_plan in enumerate(rounds_of(place, plan)):
            _add(account, run_round(place, arenas[number % len(arenas)], round_plan), round_plan, plan)
    account.seconds = time.monotonic() - started
    return account


def rounds_of(place: Place, plan: Plan) -> Iterator[RoundPlan]:
    """The rounds of a place: at least two, so that each of its arenas is used."""
    operations = round(plan.operations * place.operations / _WHOLE[0])
    faults = round(plan.faults * place.faults / _WHOLE[1])
    rounds = max(2, math.ceil(operations / (_ROUND / 2 if place.is_served else _ROUND)))
    tasks, sessions = _MANY if operations > rounds * _SHORT else _FEW
    for number in range(rounds):
        yield RoundPlan(
            number,
            f"{plan.seed} {place.name} {number}",
            operations // rounds + 1,
            faults * (number + 1) // rounds - faults * number // rounds,
            tasks,
            sessions,
        )


def _add(account: Account, report: Report, round_plan: RoundPlan, plan: Plan) -> None:
    account.operations += report.operations
    account.faults += report.faults
    scale = plan.operations / _WHOLE[0]
    replay = f"python -m tests.faults sessions --only {account.place} --seed {plan.seed} --scale {scale:g}"
    account.findings += [f"{finding} (round {round_plan.seed}; {replay})" for finding in report.findings]
    for outcome, count in report.outcomes.items():
        name = f"calls {outcome}"
        account.measures[name] = account.measures.get(name, 0) + count
