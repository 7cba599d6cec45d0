"""The scan for secrets finds one that was planted, and what it does not mind is explained and still there."""

from collections import Counter
from pathlib import Path

from .secrets import LIST, TREE, complaints, explained, found_in

# In pieces, so that the scan does not take this file for one that has them.
PLANTED = ("AKIA" + "QYLPMN5HHHFPZAM2", "sk" + "_live_" + "4eC39HqLyjWDarjtT1zdp7dc")


def test_a_planted_secret_is_found_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "settings.py"
    file.write_text("\n".join(f'value = "{secret}"' for secret in PLANTED))
    found = found_in([str(file)])
    assert {kind for _, kind in found} >= {"AWS Access Key", "Stripe Access Key"}
    told = " ".join(complaints(found, Counter()))
    assert "AWS Access Key" in told
    assert not any(secret in told for secret in PLANTED)


def test_what_is_explained_is_found_and_nothing_else_is_in_those_files() -> None:
    known = explained(LIST.read_text("utf-8"))
    files = sorted(
        {file for file, _ in known} & {"docs/how-to/run-in-production.md", "tests/cli/test_backup.py"}
    )
    assert complaints(found_in(files), Counter({key: known[key] for key in known if key[0] in files})) == []


def test_every_file_that_is_explained_exists() -> None:
    assert [file for file, _ in explained(LIST.read_text("utf-8")) if not (TREE / file).exists()] == []


def test_a_line_for_what_is_not_there_any_more_is_told() -> None:
    gone = Counter({("a.py", "Secret Keyword"): 1})
    assert complaints(Counter(), gone) == [f"a.py: 1 × Secret Keyword in {LIST.name}, not found"]
