"""What was ever found holds now, and so do some inputs that are made up anew from a seed."""

import os
import subprocess
import sys

import pytest

from .targets import TARGETS
from .targets.questions import POSTGRES
from .trying import short_form, try_all

pytestmark = pytest.mark.timeout(600)
_IN_A_CHILD = ("files",)  # what breaks there may end the process
_HERE = [name for name, target in TARGETS.items() if not target.needs_postgres and name not in _IN_A_CHILD]


@pytest.mark.parametrize("name", _HERE)
def test_whatever_is_given_is_taken_or_refused(name: str) -> None:
    assert try_all(name, short_form(name)) > 60


@pytest.mark.parametrize("name", _IN_A_CHILD)
def test_no_damage_to_a_file_ends_the_process(name: str) -> None:
    command = [sys.executable, "-m", "tests.faults.fuzzing", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "inputs hold" in done.stdout


def test_any_text_is_a_question_to_postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, POSTGRES, postgres_url)
    assert try_all("postgres-questions", short_form("postgres-questions")) > 60
