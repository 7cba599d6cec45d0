"""Sessions under faults, place by place: the long form."""

import math
import time
import traceback
from collections.abc import Iterator

from ..account import Account, Plan
from .arenas import Servers, arenas_of
from .clients import RoundPlan
from .places import PLACES, Place
from .rounds import Report, run_round

_ROUND = 10_000  # calls of a round; half of it where sessions rest after a lost connection
_SHORT = 1_000  # a round of so many is done by few
_MANY, _FEW = (12, 5), (4, 2)  # tasks of a client, and sessions of each
_WHOLE = 700_000, 700  # calls and faults of the long form, as the places share them


def run(plan: Plan) -> list[Account]:
    """Do what is planned in all places, or in the only one."""
    names = [place.name for place in PLACES]
    if plan.only not in (None, *names):
        raise ValueError(f"there is no place {plan.only}, only {', '.join(names)}")
    accounts = []
    with Servers() as servers:
        for place in PLACES:
            if plan.only in (None, place.name):
                accounts.append(run_place(place, plan, servers))
                _tell(accounts[-1])
    return accounts


def _tell(account: Account) -> None:
    """Print what is known, lest it is lost with a campaign that is ended before its time."""
    did = f"{account.operations.total():,} operations checked, {dict(account.faults)}"
    print(f"  {account.place} is done: {did}", *account.findings, sep="\n    ", flush=True)


def run_place(place: Place, plan: Plan, servers: Servers) -> Account:
    """Do what is planned for one place; where that cannot be done, it is a finding."""
    account = Account("sessions", place.name, seeds=[plan.seed])
    started = time.monotonic()
    try:
        with arenas_of(place, servers.of(place)) as arenas:
            for number, round_plan in enumerate(rounds_of(place, plan)):
                _add(account, run_round(place, arenas[number % len(arenas)], round_plan), round_plan, plan)
    except Exception as error:  # noqa: BLE001 - what was found here and elsewhere is not to be lost
        traceback.print_exc()
        (*_, last_line) = traceback.format_exception_only(error)
        account.findings.append(f"the campaign itself broke: {last_line.strip()} ({_replay(account, plan)})")
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
    replay = _replay(account, plan)
    account.findings += [f"{finding} (round {round_plan.number}; {replay})" for finding in report.findings]
    for outcome, count in report.outcomes.items():
        name = f"calls {outcome}"
        account.measures[name] = account.measures.get(name, 0) + count


def _replay(account: Account, plan: Plan) -> str:
    """The command that does the same again."""
    much = f"--operations {plan.operations} --faults {plan.faults}"
    return f"python -m tests.faults sessions --seed {plan.seed} {much} --only {account.place}"
