"""Sessions under faults, place by place: the long form."""

import math
import time
import traceback
from collections.abc import Iterator, Sequence

from ..account import Account, Plan
from .arenas import ARENAS, Servers, arenas_of
from .clients import RoundPlan
from .places import PLACES, Place, place_named
from .rounds import Report, run_round

_PART = "sessions"
_ROUND = 10_000  # calls of a round; half of it where sessions rest after a lost connection
_SHORT = 1_000  # a round of so many is done by few
_MANY, _FEW = (12, 5), (4, 2)  # tasks of a client, and sessions of each


def run(plan: Plan) -> Iterator[Account]:
    """Do what is planned in all places, or in the only one."""
    return _run_all([place_named(name) for name in plan.chosen(place.name for place in PLACES)], plan)


def _run_all(places: Sequence[Place], plan: Plan) -> Iterator[Account]:
    with Servers() as servers:
        for place in places:
            yield run_place(place, plan, servers)


def run_place(place: Place, plan: Plan, servers: Servers) -> Account:
    """Do what is planned for one place; where that cannot be done, it is a finding."""
    account = Account(_PART, place.name, seeds=[plan.seed])
    started = time.monotonic()
    try:
        with arenas_of(place, servers) as arenas:
            for number, round_plan in enumerate(rounds_of(place, plan)):
                _add(account, run_round(place, arenas[number % len(arenas)], round_plan), round_plan, plan)
    except Exception as error:  # noqa: BLE001 - what was found here and elsewhere is not to be lost
        traceback.print_exc()
        (*_, last_line) = traceback.format_exception_only(error)
        account.findings.append(
            f"the campaign itself broke: {last_line.strip()} ({plan.command(_PART, place.name)})"
        )
    account.seconds = time.monotonic() - started
    return account


def rounds_of(place: Place, plan: Plan) -> Iterator[RoundPlan]:
    """The rounds of a place: at least as many as it has arenas, so that each is used."""
    operations = round(plan.operations * place.operations / sum(each.operations for each in PLACES))
    faults = round(plan.faults * place.faults / sum(each.faults for each in PLACES))
    rounds = max(ARENAS, math.ceil(operations / (_ROUND / 2 if place.is_served else _ROUND)))
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
    replay = plan.command(_PART, account.place)
    account.findings += [f"{finding} (round {round_plan.number}; {replay})" for finding in report.findings]
    for outcome, count in report.outcomes.items():
        name = f"calls {outcome}"
        account.measures[name] = account.measures.get(name, 0) + count
