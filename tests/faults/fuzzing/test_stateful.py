"""Requests in sequences: no step after another breaks the service, and what was made is there."""

import re
from pathlib import Path

import pytest

from recollect.testing.providers import ProviderServer

from ...server.proof.conftest import opened
from ...server.proof.places import settings_for
from .stateful import run_sequences

_COVERED = re.compile(r"API Links:\s+(\d+) covered")


@pytest.mark.timeout(600)
def test_no_sequence_of_requests_breaks_the_service(tmp_path: Path, running_server: ProviderServer) -> None:
    with opened(str(tmp_path / "recollect.db"), settings_for(tmp_path, running_server)) as place:
        done = run_sequences(place, tmp_path, count=2)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        covered = _COVERED.search(done.stdout)
        assert covered is not None
        assert int(covered[1]) > 0, "no request asked for what another had made"
        assert place.server.log().count('"level": "ERROR"') == 0
