"""The examples of the pages about these frameworks run."""

from pathlib import Path

import pytest

from ..documentation import ELSEWHERE, run_blocks


@pytest.mark.parametrize("page", ELSEWHERE, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page)
