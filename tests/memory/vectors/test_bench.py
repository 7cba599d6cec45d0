"""`recollect bench vectors`, on a few vectors: what it tells is what it has measured."""

import json

import numpy as np
import pytest

from benchmarks.search.vectors import Plan, Truth, id_of, read_sizes
from recollect.cli import main

from ...sessions.postgres.database import sql


def run(*arguments: str) -> int:
    return main(["bench", "vectors", *arguments])


def test_both_databases_are_measured_and_exact_search_finds_all(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sql(postgres_url, "SELECT count(*) FROM pg_database")
    arguments = ["--sizes", "600", "--dimensions", "16", "--users", "3", "--json", "--postgres", postgres_url]
    assert run(*arguments) == 0
    told = capsys.readouterr()
    (report,) = json.loads(told.out)
    assert (report["vectors"], report["dimensions"], report["users"]) == (600, 16, 3)
    exact = [("sqlite", where) for where in ("one user", "one user, again", "all users")]
    for database, where in (*exact, ("postgres", "one user")):
        assert report[database][where]["recall@10"] == 1.0
        assert report[database][where]["questions"] == 50
    assert report["postgres"]["all users"]["recall@10"] > 0.5
    assert report["postgres"]["one user, through the index"]["p50_ms"] > 0
    assert "600 vectors of 16 dimensions" in told.err
    assert sql(postgres_url, "SELECT count(*) FROM pg_database") == before, "what was made is removed"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("10k,100k,1M", [10_000, 100_000, 1_000_000]), ("500", [500]), (" 2K , 20", [2000, 20])],
)
def test_sizes_are_read(text: str, sizes: list[int]) -> None:
    assert read_sizes(text) == sizes


@pytest.mark.parametrize("text", ["", "many", "5", "-1k", "1.5k"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - argparse tells the user
        read_sizes(text)


def test_vectors_are_the_same_each_time_and_of_length_one() -> None:
    plan = Plan(100, 16, 2)
    ((_, first),) = plan.blocks()
    ((_, second),) = plan.blocks()
    assert np.array_equal(first, second)
    assert np.linalg.norm(first, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_the_truth_is_what_comparing_all_finds() -> None:
    plan = Plan(200, 16, 2)
    truth = Truth(plan)
    ((_, block),) = plan.blocks()
    for start in (0, 100):
        truth.see(start, block[start : start + 100])
    user, vector = plan.questions()[3]
    order = np.argsort(-(block @ vector))
    assert truth.anywhere(3) == {id_of(int(row)) for row in order[:10]}
    own = [int(row) for row in order if plan.user_of(int(row)) == user]
    assert truth.of_user(3) == set(map(id_of, own[:10]))
