"""The audit of what we depend on never takes for sound what it could not look up."""

import json
import subprocess
from typing import Any

import pytest

from .audit import LOCK, forbidden_licences, installed, judge, licences, locked, not_as_locked, read

SOUND: dict[str, Any] = {"name": "a", "version": "1", "vulns": []}
UNSOUND: dict[str, Any] = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1"}]}
SKIPPED: dict[str, Any] = {"name": "c", "skip_reason": "Dependency not found on PyPI: c (3)"}
REFUSED: dict[str, Any] = {"name": "d", "skip_reason": "d has no version"}


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([SOUND], 0, "1 packages were looked up"),
        ([SOUND, UNSOUND], 1, "UNSOUND: b 2: PYSEC-1"),
        ([SOUND, SKIPPED], 2, "COULD NOT BE AUDITED: 1 packages"),
        ([UNSOUND, SKIPPED], 1, "UNSOUND"),
        ([SOUND, REFUSED], 1, "THE AUDIT FAILED: d has no version"),
        ([], 1, "THE AUDIT FAILED"),
    ],
)
def test_only_what_was_looked_up_counts_as_sound(packages: list[Any], code: int, said: str) -> None:
    verdict = judge({"dependencies": packages}, [package["name"] for package in packages])
    assert verdict.code == code
    assert said in verdict.tell()


def test_what_is_locked_and_not_in_the_report_is_told() -> None:
    verdict = judge({"dependencies": [SOUND]}, ["a", "b"])
    assert verdict.code == 1
    assert verdict.tell() == "THE AUDIT FAILED: b is locked, and was not looked up"


@pytest.mark.parametrize(
    ("out", "told", "ended", "code"),
    [
        ("", "Traceback\nrequests.exceptions.ConnectionError: no route\n", 1, 2),
        ("", "ERROR: Could not connect to PyPI's vulnerability feed\n", 1, 2),
        ("", "Traceback\nValueError: requests.exceptions.ConnectionError\n", 1, 1),
        ("", "No module named pip_audit\n", 1, 1),
        (json.dumps({"dependencies": [SOUND]}), "", 0, 0),
        (json.dumps({"dependencies": [SOUND]}), "", 2, 1),
    ],
)
def test_only_a_service_that_cannot_be_reached_excuses_an_audit(
    out: str, told: str, ended: int, code: int
) -> None:
    assert read(subprocess.CompletedProcess([], ended, out, told), ["a"]).code == code


def test_what_is_installed_is_what_the_lock_says() -> None:
    assert not_as_locked(locked(LOCK.read_text("utf-8")), installed()) == []


def test_another_version_or_none_is_told() -> None:
    lock = locked("a==1\nB.c==2 ; sys_platform == 'win32'\nd-e==3\n")
    assert lock == {"a": "1", "d-e": "3"}
    assert not_as_locked(lock, {"a": "2"}) == [
        "a is 2, and the lock says 1",
        "d-e is not installed, and the lock says 3",
    ]


def test_every_version_is_locked_exactly() -> None:
    lines = [line for line in LOCK.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert len(lines) > 100
    assert [line for line in lines if "==" not in line.split(";")[0]] == []


def test_no_licence_binds_users_beyond_ours() -> None:
    told = licences()
    assert len(told) > 100
    assert forbidden_licences(told) == []


@pytest.mark.parametrize(
    ("licence", "is_forbidden"),
    [
        ("MIT", False),
        ("LGPL-3.0-only", False),
        ("License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)", False),
        ("GPL-3.0-or-later", True),
        ("License :: OSI Approved :: GNU General Public License v3 (GPLv3)", True),
        ("AGPL-3.0-only", True),
        ("SSPL-1.0", True),
        ("BUSL-1.1", True),
    ],
)
def test_licences_that_bind_users_are_known(licence: str, is_forbidden: bool) -> None:
    assert bool(forbidden_licences({"package": licence})) is is_forbidden
