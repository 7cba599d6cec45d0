"""Checkpoints of LangGraph under faults, on each database: episodes of concurrent clients and a pruner."""

import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from recollect.integrations.langgraph import Checkpointer

from ..account import Account, Plan
from ..memory.campaign import episodes_of, harm_while
from ..memory.crew import Crew, Launcher, launcher_at
from ..memory.harm import Harm
from ..memory.journal import read_lines
from ..memory.orders import Order
from ..memory.places import PLACES, Place
from .checks import check, read_all
from .state import config_of

_PART = "checkpoints"
_MODULE = "tests.faults.checkpoints.processes"
_CLIENTS = 2


def run(plan: Plan) -> Iterator[Account]:
    """Do a plan, its operations and faults spread evenly over the databases."""
    names = plan.chosen(PLACES)
    return (run_at(name, *episodes_of(plan)) for name in names)


def run_at(name: str, seeds: Sequence[int], operations: int, faults: int) -> Account:
    """Do an episode of that size for each seed, one after another, at a place."""
    account = Account(_PART, name)
    begun = time.monotonic()
    with ExitStack() as stack:
        logging.disable()  # faults are meant
        stack.callback(logging.disable, logging.NOTSET)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-checkpoint-faults-")))
        place = stack.enter_context(PLACES[name](folder))
        launcher = stack.enter_context(launcher_at(place, _MODULE))
        for seed in seeds:
            findings = _episode(place, launcher, seed, operations, faults, account)
            replay = Plan(seed, operations * len(PLACES), faults * len(PLACES)).command(_PART, name)
            account.findings += [f"{finding} ({replay})" for finding in findings]
            account.seeds.append(seed)
            place.drop_database()
    account.seconds = time.monotonic() - begun
    return account


def _episode(
    place: Place, launcher: Launcher, seed: int, operations: int, faults: int, account: Account
) -> list[str]:
    """Some operations and faults on a database of their own; returns what did not hold."""
    place.new_database()
    asyncio.run(_make_tables(place.url))
    with _crew(place, launcher, seed, operations) as crew:
        harm = Harm(place, crew, None, Random(f"{seed}/faults"))
        findings = harm_while(crew, harm, operations, faults) or crew.end()
    account.faults += harm.done
    for path in (*crew.journals, *crew.worker_journals):
        findings += _read_counts(path, account)
    findings += place.left()
    return findings + asyncio.run(check(place.url, read_all(crew.journals)))


async def _make_tables(url: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        await checkpointer.aget_tuple(config_of("none"))


def _crew(place: Place, launcher: Launcher, seed: int, operations: int) -> Crew:
    folder = place.folder / f"episode-{place.number}"
    folder.mkdir()
    clients = [
        Order(
            place.url_for(client),
            str(folder / f"client-{client}"),
            seed,
            client,
            operations=-(-operations // _CLIENTS),
        )
        for client in range(_CLIENTS)
    ]
    return Crew(launcher, clients, Order(place.url_for(0), str(folder / "worker"), is_worker=True))


def _read_counts(path: Path, account: Account) -> list[str]:
    """Count what a journal tells; returns what it says was wrong."""
    findings: list[str] = []
    for what, _, told in read_lines(path):
        if what == "acknowledged":
            account.operations[told[0]] += 1
        elif what == "looked":
            account.operations[told] += 1
        elif what == "wrong":
            findings.append(told)
        elif what == "ended":
            findings += [f"a process has not let go of {each}" for each in told]
    return findings
