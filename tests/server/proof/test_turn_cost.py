"""What a chat turn costs: two transactions, those of the lock, and the entry of the audit log."""

import asyncio
from pathlib import Path

from benchmarks.service.turn_cost import measure_turn

from .conftest import migrated_database

WRITE_TRANSACTIONS = 5
STATEMENTS = 52  # half of what it was when messages were copied to the session and to the log afterwards


def test_a_turn_in_a_file_takes_five_write_transactions(tmp_path: Path) -> None:
    cost = asyncio.run(measure_turn(str(tmp_path / "turn.db")))
    assert len(cost.writes) == WRITE_TRANSACTIONS


def test_a_turn_on_a_server_takes_five_write_transactions_and_half_of_the_statements(
    postgres_url: str,
) -> None:
    with migrated_database(postgres_url) as url:
        cost = asyncio.run(measure_turn(url))
    assert len(cost.writes) == WRITE_TRANSACTIONS
    assert cost.statements <= STATEMENTS
