"""Upgrades at length: kills of migrations on every release, and backups while serving, on both databases."""

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from recollect.testing.servers.postgres import PostgresServer

from ..account import Account, Plan
from .backups import Backups, can_be_served
from .killed import KilledFiles, KilledServers
from .killer import Killer
from .releases import ON_SERVERS, RELEASES

_PART = "upgrades"
_FEWEST_WRITES = 60


def run(plan: Plan) -> Iterator[Account]:
    """Do it on a file and on a PostgreSQL; each gets half of the faults and of the writes."""
    places: dict[str, Callable[[Plan, Account], None]] = {"sqlite": _on_files, "postgres": _on_servers}
    chosen = plan.chosen(places)
    return (_run_at(place, places[place], plan) for place in chosen)


def _run_at(place: str, work: Callable[[Plan, Account], None], plan: Plan) -> Account:
    account, begun = Account(_PART, place, seeds=[plan.seed]), time.monotonic()
    work(plan, account)
    account.seconds = time.monotonic() - begun
    account.findings = [f"{finding} ({plan.command(_PART, place)})" for finding in account.findings]
    return account


def _on_files(plan: Plan, account: Account) -> None:
    choices = random.Random(f"{plan.seed} sqlite")
    with Killer() as killer, KilledFiles(killer, account) as files:
        for release in RELEASES:
            files.migrate_together(release)
        for number in range(plan.faults // 2):
            kill = files.kill_at_some_time if number % 5 == 4 else files.kill
            kill(choices.choice(RELEASES), choices)
    with tempfile.TemporaryDirectory(prefix="recollect-backups-") as folder:
        copy = Backups(account, max(_FEWEST_WRITES, plan.operations // 2)).of_file(Path(folder))
        if not can_be_served(copy):
            account.findings.append("a restored copy cannot be served")


def _on_servers(plan: Plan, account: Account) -> None:
    choices = random.Random(f"{plan.seed} postgres")
    with PostgresServer() as server, Killer() as killer:
        servers = KilledServers(killer, account, server)
        for release in ON_SERVERS:
            servers.migrate_together(release)
        for number in range(plan.faults // 2):
            kill = servers.kill_server if number % 5 == 4 else servers.kill_client
            kill(choices.choice(ON_SERVERS), choices)
        backups = Backups(account, max(_FEWEST_WRITES, plan.operations // 4))
        with tempfile.TemporaryDirectory(prefix="recollect-backups-") as folder:
            backups.by_dump(server.url, Path(folder))
        backups.by_base_backup(server)
