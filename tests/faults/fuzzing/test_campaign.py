"""A campaign tries as many inputs as it was asked to, and goes on without one that does not hold."""

from pathlib import Path

import pytest

from ..account import Plan
from .campaign import leave_out, run, share_of
from .targets import TARGETS


def test_the_shares_are_no_less_than_all() -> None:
    assert sum(share_of(target, 1_000_001) for target in TARGETS.values()) >= 1_000_001
    assert min(share_of(target, 1) for target in TARGETS.values()) == 20


def test_what_was_found_is_left_out_and_the_rest_stays(tmp_path: Path) -> None:
    for name, data in {"found": b"bad", "longer": b"bad, and cut off", "other": b"good"}.items():
        (tmp_path / name).write_bytes(data)
    leave_out(tmp_path, [b"bad"], longest=3)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ValueError, match="no place elsewhere"):
        run(Plan(7, 1, 0, "elsewhere"))
