"""Long-term memory under faults, on each database: episodes of concurrent clients, checked at their ends."""

import asyncio
import logging
import tempfile
import time
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

_CLIENTS = 2
_LONGEST_EPISODE = 5_000  # operations
_LEAST_FAULTS = 3  # of a place
_SETTLING = 300.0  # seconds
_POLL = 0.005
_PATIENT = RunOptions(lease_seconds=30)


def run(plan: Plan) -> list[Account]:
    """Do a plan, its operations and faults spread evenly over the databases."""
    names = [name for name in PLACES if plan.only in (None, name)]
    return [_run_at(name, plan, len(PLACES)) for name in names]


def _run_at(name: str, plan: Plan, places: int) -> Account:
    account = Account("memory", name)
    operations, faults = plan.operations // places, max(plan.faults // places, _LEAST_FAULTS)
    episodes = max(1, round(operations / _LONGEST_EPISODE))
    begun = time.monotonic()
    with ExitStack() as stack:
        logging.disable()  # faults are meant
        stack.callback(logging.disable, logging.NOTSET)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-memory-faults-")))
        place = stack.enter_context(PLACES[name](folder))
        launcher = stack.enter_context(launcher_at(place))
        for number in range(episodes):
            size = (operations // episodes, -(-faults // episodes))
            Episode(place, launcher, plan.seed + number, *size).run(account)
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
            crew = self._crew(provider)
            harm = Harm(self.place, crew, provider, Random(f"{self.seed}/faults"))
            findings = self._harm(crew, harm)
            findings += crew.end()
            account.faults += harm.done
            _add(account, "seconds of clients", time.monotonic() - begun)
            findings += self._check(crew, provider, account)
        replay = f"--seed {self.seed} --only {self.place.name}"
        account.findings += [f"{finding} (memory {replay})" for finding in findings]
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

    def _harm(self, crew: Crew, harm: Harm) -> list[str]:
        """Do the faults, each when its share of the operations is done; then nothing more is in the way."""
        due = sorted(harm.random.uniform(0.02, 0.95) * self.operations for _ in range(self.faults))
        for at, kind in zip(due, harm.choose(self.faults), strict=True):
            while crew.operations() < at and not crew.is_done():
                if lost := crew.is_lost():
                    return [f"clients {lost} ended by themselves"]
                time.sleep(_POLL)
            harm.do(kind)
        harm.undo()
        return []

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
