"""A round: clients at work, faults in between, and a check of everything when they have ended."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from .arenas import Arena
from .clients import CLIENTS, Clients, RoundPlan
from .journal import Ended, Outcome
from .model import Follower
from .places import Place
from .sharing import check_shared
from .stored import read_histories

KILLED = "client killed"
JUMPED = "clock jumped"
_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where a client that is killed loses nothing


@dataclass
class Report:
    """What was done in a round, and what did not hold."""

    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def run_round(place: Place, arena: Arena, plan: RoundPlan) -> Report:
    """Do a round and check it."""
    report = Report()
    with TemporaryDirectory(prefix="recollect-journals-", dir=_IN_MEMORY) as folder:
        with Clients(place, arena, plan, Path(folder)) as clients:
            clients.start()
            _harm(arena, clients, plan, report)
            clients.end()
        report.findings += clients.findings
        _check(place, arena, clients, report)
    return report


def _harm(arena: Arena, clients: Clients, plan: RoundPlan, report: Report) -> None:
    """Inject the faults, each kind in its turn, at moments between the first call and the last."""
    chance = random.Random(plan.seed)
    kinds = [KILLED, JUMPED, *arena.faults]
    chance.shuffle(kinds)
    moments = [*sorted(chance.sample(range(plan.operations), plan.faults)), plan.operations]
    for moment, kind in zip(moments, cycle(kinds), strict=False):
        if not clients.wait_until(moment):
            report.findings.append(f"nothing went on any more: {clients.stacks()}")
            return
        if moment == plan.operations:
            return
        if kind == KILLED:
            took_effect = clients.kill(chance.randrange(CLIENTS))
        elif kind == JUMPED:
            took_effect = clients.jump_clock(chance)
        else:
            took_effect = arena.faults[kind](chance, clients)
        report.faults[kind] += took_effect


def _check(place: Place, arena: Arena, clients: Clients, report: Report) -> None:
    own, shared = clients.own_sessions(), clients.shared
    journals = clients.said()
    calls = [ended for said in journals for ended in said.calls]
    for name, value in [remark for said in journals for remark in said.remarks]:
        if name != "left" or value:
            report.findings.append(f"{name}: {value}")
    url = place.url(arena.where)
    found = asyncio.run(read_histories(place, url, [*own, *shared]))
    report.findings += arena.check(found)
    report.findings += _follow(arena, calls, shared)
    for name in own:
        wrong = arena.followers.setdefault(name, Follower()).meet(found[name])
        report.findings += [f"{name} {wrong}"] if wrong else []
    for name in shared:
        report.findings += [f"{name}: {wrong}" for wrong in check_shared(_on(calls, name), found[name].items)]
    asyncio.run(_clear(place, url, shared))
    count(calls, report)


def _follow(arena: Arena, calls: list[Ended], shared: tuple[str, ...]) -> list[str]:
    """What the calls on sessions of one task tell that cannot be; of each session the first."""
    wrong: dict[str, str] = {}
    for ended in calls:
        name = ended.call.session
        if name not in shared and name not in wrong:
            cannot_be = arena.followers.setdefault(name, Follower()).follow(ended)
            if cannot_be:
                wrong[name] = f"{name}: {cannot_be}"
    return list(wrong.values())


def _on(calls: list[Ended], session: str) -> list[Ended]:
    return [ended for ended in calls if ended.call.session == session]


async def _clear(place: Place, url: str, names: tuple[str, ...]) -> None:
    for name in names:
        async with place.open(url, name) as session:
            await session.clear_session()


def count(calls: list[Ended], report: Report) -> None:
    """A call is counted where its effect was checked: also that of a write whose outcome was not known."""
    for ended in calls:
        report.outcomes[ended.outcome] += 1
        is_unseen = ended.outcome is Outcome.UNKNOWN and ended.call.only_reads
        if ended.outcome is not Outcome.FAILED and not is_unseen:
            report.operations[ended.call.kind] += 1
        if ended.outcome is Outcome.UNKNOWN and ended.value == "cancelled":
            report.faults["calls cancelled"] += 1
