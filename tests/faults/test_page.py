"""The page of results says what the campaigns kept, and names tests that exist."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from .account import Account, load_accounts
from .page import FOUND, PAGE, page_of

ROOT = Path(__file__).parents[2]
found = tomllib.loads(FOUND.read_text())["found"]


def test_the_page_is_what_was_kept() -> None:
    assert PAGE.read_text() == page_of(load_accounts(), found)


@pytest.mark.parametrize("test", [each["test"] for each in found])
def test_a_test_that_is_named_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()


def test_an_account_is_kept_as_it_is(tmp_path: Path) -> None:
    account = Account("sessions", "sqlite", Counter(add=3), Counter(kill=1), [7], ["x"], {"bytes": 1.5}, 2.0)
    account.save(tmp_path)
    assert load_accounts(tmp_path) == [account]
    assert account.commit


def test_what_did_not_hold_is_on_the_page() -> None:
    account = Account("sessions", "sqlite", findings=["an item is missing --seed 7"])
    assert "**Violation**" in page_of([account], found)
    assert "an item is missing --seed 7" in page_of([account], found)
