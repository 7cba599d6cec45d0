"""What grows over time is found, and sessions under constant readers do not."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from recollect.sql.sqlite.wal import LARGEST
from recollect.testing.servers.postgres import PostgresServer

from ..account import Account, Plan
from . import on_sessions
from .campaign import run
from .databases import Postgres
from .looks import ENOUGH, Look, what_did_not_hold

_STRETCHES = 40
_LEVEL = Look(0, latency=0.01, memory=100_000_000, handles=50, threads=10, log=1_000_000, stored=5_000_000)


def looks_with(**at_the_end: float) -> list[Look]:
    """Looks at a soak in which some things rise evenly, from what they are to what they are at the end."""
    looks = []
    for number in range(1, _STRETCHES + 1):
        part = number / _STRETCHES
        risen = {name: _risen(getattr(_LEVEL, name), end, part) for name, end in at_the_end.items()}
        looks.append(replace(_LEVEL, operations=int(part * 2 * ENOUGH), **risen))
    return looks


def _risen(start: float, end: float, part: float) -> float:
    return type(start)(start + (end - start) * part)


def test_what_stays_level_is_in_order() -> None:
    assert what_did_not_hold(looks_with(memory=101_000_000), LARGEST) == []


@pytest.mark.parametrize(
    ("name", "end"),
    [("memory", 113_000_000), ("handles", 100), ("threads", 20), ("stored", 10_000_000), ("latency", 0.03)],
)
def test_what_grows_is_found(name: str, end: float) -> None:
    (found,) = what_did_not_hold(looks_with(**{name: end}), LARGEST)
    assert name in found or name == "latency"


def test_a_start_in_which_caches_are_filled_is_no_growth() -> None:
    looks = looks_with()
    early = [replace(look, memory=look.memory // 2) for look in looks[:10]]
    assert what_did_not_hold([*early, *looks[10:]], LARGEST) == []


def test_a_log_that_is_too_large_is_found_however_short_the_soak() -> None:
    assert len(what_did_not_hold([replace(_LEVEL, log=2 * LARGEST)], LARGEST)) == 1


@pytest.mark.timeout(600)
def test_what_was_deleted_is_vacuumed_unless_somebody_holds_an_old_snapshot() -> None:
    with PostgresServer() as server, closing(Postgres(server.url)) as database:
        with psycopg.connect(server.url) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT 1 FROM pg_class LIMIT 1").fetchone()
            _make_and_delete_rows(server.url)
            assert database.dead_part_in_time(0.5, patience=3) > 0.5
        assert database.dead_part_in_time(0.5, patience=300) <= 0.5


def _make_and_delete_rows(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as writer:
        writer.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
        writer.execute("DELETE FROM kept")
        writer.execute("SELECT pg_stat_force_next_flush()")


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place elsewhere"):
        run(Plan(7, 1, 0, "elsewhere"))


@pytest.mark.timeout(600)
def test_a_short_soak_of_sessions_holds(tmp_path: Path) -> None:
    account = Account("soak", "sessions-sqlite", seeds=[7])
    on_sessions.soak(account, tmp_path, operations=200, stretches=2)
    assert account.findings == []
    assert account.operations.total() == 500
    assert account.measures["largest log, bytes"] > 0
