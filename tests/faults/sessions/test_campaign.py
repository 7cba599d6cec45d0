"""The campaign itself: what breaks in it is told, and whom it started does not outlive it."""

import asyncio
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from recollect.testing.servers.redis import RedisServer

from ..account import Plan
from ..clock import shared_clock
from .arenas import Server, Servers, arenas_of
from .campaign import run, run_place
from .client import Client, Orders
from .clients import Clients, RoundPlan
from .journal import Journal, read_journal
from .places import Place, place_named
from .rounds import run_round

ROOT = Path(__file__).parents[3]
NOBODY = "redis://127.0.0.1:9/0"
PARENT = """
import multiprocessing, sys
from pathlib import Path
from tests.faults.sessions.client import Orders, run_client
folder = Path(sys.argv[1])
where = str(folder / "db"), "seed", folder / "journal"
orders = Orders("sqlite", *where, 0, 0, 1, 1, ("shared",), frozenset(), 0.0)
client = multiprocessing.get_context("forkserver").Process(target=run_client, args=(orders,))
client.start()
print(client.pid, flush=True)
client.join()
"""


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no place nowhere"):
        run(Plan(1, operations=1, faults=0, only="nowhere"))


class NoServers(Servers):
    def of(self, place: Place) -> Server:
        raise RuntimeError(f"there is no server of {place.kept_in}")


def test_what_breaks_in_a_place_is_a_finding_with_the_command_that_shows_it_again() -> None:
    account = run_place(place_named("redis"), Plan(7, operations=30, faults=2), NoServers())
    assert account.findings == [
        "the campaign itself broke: RuntimeError: there is no server of redis"
        " (python -m tests.faults sessions --seed 7 --operations 30 --faults 2 --only redis)"
    ]


class Unhurt:
    def failures(self, *errors: str) -> int:  # noqa: ARG002
        return 0


@pytest.mark.parametrize("fault", ["server killed", "connections cut", "answers delayed"])
def test_a_fault_that_nobody_met_with_did_not_take_effect(fault: str) -> None:
    place = place_named("redis")
    with Servers() as servers, arenas_of(place, servers) as arenas:
        (arena,) = (arena for arena in arenas if fault in arena.faults)
        assert not arena.faults[fault](random.Random(1), Unhurt())


@pytest.mark.parametrize("fault", ["server killed", "connections cut"])
def test_a_fault_that_somebody_met_with_took_effect(fault: str) -> None:
    place = place_named("redis")
    with Servers() as servers, arenas_of(place, servers) as arenas:
        (arena,) = (arena for arena in arenas if fault in arena.faults)
        with socket.create_connection(("127.0.0.1", urlsplit(arena.where).port or 0)) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
            assert arena.faults[fault](random.Random(1), Unhurt())


def test_clients_and_servers_go_by_a_clock_that_jumps(tmp_path: Path) -> None:
    place = place_named("redis")
    with Servers() as servers, arenas_of(place, servers) as (arena, *_):
        with Clients(place, arena, RoundPlan(0, "seed", 1, 0, 1, 1), tmp_path) as clients:
            clients.start()
            assert clients.jump_clock(random.Random(1))
            wrong_by = shared_clock().wrong_by
            server = servers.of(place)
            assert isinstance(server, RedisServer)
            (seconds, _) = server.command("TIME")
            assert wrong_by != 0
            assert abs(int(seconds) - time.time() - wrong_by) < 60
        assert shared_clock().wrong_by == 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["redis", "postgresql-psycopg"])
def test_the_disk_of_a_server_is_full_and_nothing_is_lost(name: str) -> None:
    place = place_named(name)
    with Servers() as servers, arenas_of(place, servers) as (*_, arena):
        report = run_round(place, arena, RoundPlan(0, "seed", operations=600, faults=3, tasks=4, sessions=2))
    assert report.findings == []
    assert report.faults["disk full"] == 1


def test_a_client_ends_with_the_campaign_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as campaign:
        assert campaign.stdout is not None
        client = Path("/proc", campaign.stdout.readline().strip())
        _wait_for(tmp_path / "journal")
        assert client.exists()
        campaign.kill()
    while client.exists():  # or this test is ended for taking too long
        time.sleep(0.01)


def _wait_for(journal: Path) -> None:
    while not (journal.exists() and journal.stat().st_size):
        time.sleep(0.01)


def _used(journal: Path) -> set[str]:
    return {ended.call.session for ended in read_journal(journal).calls}


def test_a_session_that_does_not_recover_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    orders = Orders("redis", NOBODY, "seed", path, 0, 0, 1, 1, ("shared",), frozenset(), 0.0, recovery=0.0)

    async def work() -> None:
        journal = Journal(path)
        client = Client(orders, journal)
        working = asyncio.create_task(client.run())
        while _used(path) != {"own-0-0-0", "shared"}:  # noqa: ASYNC110 - there is nothing to be told by
            await asyncio.sleep(0.01)
        client.end()
        await working
        journal.close()

    asyncio.run(work())
    remarks = read_journal(path).remarks
    assert [value for name, value in remarks if name == "did not recover"] == ["own-0-0-0", "shared"]
