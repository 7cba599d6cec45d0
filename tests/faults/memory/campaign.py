"""Long-term memory under faults, on each database: episodes of concurrent clients, checked at their ends."""

import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.testing.providers import ProviderServer

from ..account import Account, Plan
from .checks import check
from .crew import Crew, Launcher, launcher_at
from .found import Found
from .harm import Harm
from .journal import read_journal
from .models import close, embedder_of, extractor_of
from .orders import Order
from .places import PLACES, Place
from .provider import new_provider

_PART = "memory"
_CLIENTS = 2
_LONGEST_EPISODE = 5_000  # operations
_LEAST_FAULTS = 3  # of an episode
_SETTLING = 300.0  # seconds
_PATIENT = RunOptions(lease_seconds=30)


def run(plan: Plan) -> Iterator[Account]:
    """Do a plan, its operations and faults spread evenly over the databases."""
    names = plan.chosen(PLACES)
    return (run_at(name, *episodes_of(plan)) for name in names)


def episodes_of(plan: Plan) -> tuple[range, int, int]:
    """The seeds of the episodes in each place, and how many operations and faults each has."""
    operations, faults = plan.operations // len(PLACES), plan.faults // len(PLACES)
    episodes = max(1, round(operations / _LONGEST_EPISODE))
    seeds = range(plan.seed, plan.seed + episodes)
    return seeds, operations // episodes, max(-(-faults // episodes), _LEAST_FAULTS)


def replay_of(name: str, seed: int, operations: int, faults: int) -> str:
    """What to type for the same episode again, and no other."""
    return Plan(seed, operations * len(PLACES), faults * len(PLACES)).command(_PART, name)


def run_at(name: str, seeds: Sequence[int], operations: int, faults: int) -> Account:
    """Do an episode of that size for each seed, one after another, at a place."""
    account = Account(_PART, name)
    begun = time.monotonic()
    with ExitStack() as stack:
        logging.disable()  # faults are meant
        stack.callback(logging.disable, logging.NOTSET)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-memory-faults-")))
        place = stack.enter_context(PLACES[name](folder))
        launcher = stack.enter_context(launcher_at(place))
        for seed in seeds:
            Episode(place, launcher, seed, operations, faults).run(account)
    account.seconds = time.monotonic() - begun
    return account


@dataclass(frozen=True)
class Episode:
    """Some operations and faults on a database of their own, and what must hold afterwards.

    With an even seed learning goes by rule, with an odd one by a model over HTTP, which fails now and then.
    """

    place: Place
    launcher: Launcher
    seed: int
    operations: int
    faults: int

    def run(self, account: Account) -> None:
        """Do it, and keep what was done and found."""
        self.place.new_database()
        asyncio.run(self._make_tables())
        begun = time.monotonic()
        with ExitStack() as stack:
            provider = stack.enter_context(new_provider()) if self.seed % 2 else None
            with self._crew(provider) as crew:
                harm = Harm(self.place, crew, provider, Random(f"{self.seed}/faults"))
                findings = harm_while(crew, harm, self.operations, self.faults) or crew.end()
            account.faults += harm.done
            _add(account, "seconds of clients", time.monotonic() - begun)
            findings += self._check(crew, provider, account)
        replay = replay_of(self.place.name, self.seed, self.operations, self.faults)
        account.findings += [f"{finding} ({replay})" for finding in findings]
        account.seeds.append(self.seed)
        self.place.drop_database()

    async def _make_tables(self) -> None:
        async with MemoryStore(self.place.url, workers=0, embedder=None, create_tables=True) as store:
            await store.coverage()

    def _crew(self, provider: ProviderServer | None) -> Crew:
        folder = self.place.folder / f"episode-{self.place.number}"
        folder.mkdir()
        model = {"provider": provider.base_url, "api_key": provider.api_key} if provider else {}
        clients = [
            Order(
                self.place.url_for(client),
                str(folder / f"client-{client}"),
                self.seed,
                client,
                operations=-(-self.operations // _CLIENTS),
                searches_by_meaning=client % 2 == 0,
                **model,
            )
            for client in range(_CLIENTS)
        ]
        worker = Order(self.place.url_for(0), str(folder / "worker"), is_worker=True, **model)
        return Crew(self.launcher, clients, worker)

    def _check(self, crew: Crew, provider: ProviderServer | None, account: Account) -> list[str]:
        begun = time.monotonic()
        findings = asyncio.run(self._settle(provider))
        _add(account, "seconds of settling", time.monotonic() - begun)
        lives = [read_journal(path) for path in crew.journals]
        for life in lives:
            account.operations += life.counts
            findings += life.wrong
        for life in [*lives, *map(read_journal, crew.worker_journals)]:
            findings += [f"a process has not let go of {what}" for what in life.left or ()]
        findings += self.place.left()
        return findings + list(check(Found(self.place.rows()), lives))

    async def _settle(self, provider: ProviderServer | None) -> list[str]:
        """Let all be learned that is pending, and have what failed tried again."""
        access = (provider.base_url, provider.api_key) if provider else ("", "")
        extractor, embedder = extractor_of(*access), embedder_of(*access)
        try:
            async with MemoryStore(
                self.place.url, extractor=extractor, embedder=embedder, options=_PATIENT
            ) as store:
                return await _settled(store)
        except TimeoutError:
            return ["what is pending is never learned"]
        finally:
            await close(extractor, embedder)


def harm_while(crew: Crew, harm: Harm, operations: int, faults: int) -> list[str]:
    """Do the faults, each when its share of the operations is done; then nothing more is in the way.

    Returns why the operations do not come to their end, if they do not.
    """
    due = sorted(harm.random.uniform(0.02, 0.95) * operations for _ in range(faults))
    try:
        for at, kind in zip(due, harm.choose(faults), strict=True):
            if wrong := crew.wait_for(at):
                return wrong
            if not crew.is_done():
                harm.do(kind)
    finally:
        harm.undo()
    return []


def _add(account: Account, measure: str, seconds: float) -> None:
    account.measures[measure] = round(account.measures.get(measure, 0.0) + seconds, 1)


async def _settled(store: MemoryStore) -> list[str]:
    store.start()
    async with asyncio.timeout(_SETTLING):
        while True:
            await asyncio.sleep(0.35)  # the longest quiet that a conversation was to have
            coverage = await store.drain()
            failed = await store.list_runs("failed", limit=200)
            for run in failed:
                await store.retry_run(run.run_id)
            if not failed and not coverage.pending:
                break
    return [] if coverage == Coverage(coverage.remembered) else [f"not all is remembered: {coverage}"]
