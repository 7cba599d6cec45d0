"""What the service answers is what its OpenAPI document says, whatever it is asked."""

from pathlib import Path

import pytest

from .places import Place
from .schemas import LONG, run_schemathesis


@pytest.mark.timeout(0 if LONG else 600)
def test_schemathesis_finds_nothing_on_sqlite(place_on_sqlite: Place, tmp_path: Path) -> None:
    done = run_schemathesis(place_on_sqlite, tmp_path, examples=2)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert [line for line in place_on_sqlite.server.log().splitlines() if '"level": "ERROR"' in line] == []
