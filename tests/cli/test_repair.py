"""`recollect repair`, and what `recollect doctor` says of corrupt rows."""

import asyncio
import json
import stat
from pathlib import Path

import pytest

from ..memory.corrupt.kit import ANYWHERE, IN_SQLITE, SECRET, USER, Case, corrupt, fill
from ..memory.databases import Place
from ..memory.rights.kit import AGENT
from .conftest import Run


@pytest.fixture
def place(folder: Path) -> Place:
    """A file with a memory in it."""
    place = Place(str(folder / "recollect.db"))
    asyncio.run(fill(place))
    return place


def _texts(place: Place) -> list[str]:
    async def read() -> list[str]:
        async with place.open() as store:
            return [entry.text for entry in await store.list_entries(AGENT, USER)]

    return asyncio.run(read())


def _rows_finding(run: Run) -> dict[str, str]:
    checks = run("doctor", "--json").json["checks"]
    found: dict[str, str] = next(check for check in checks if check["name"] == "rows")
    return found


@pytest.mark.usefixtures("place")
def test_a_memory_without_corrupt_rows_is_well(run: Run) -> None:
    assert _rows_finding(run)["state"] == "ok"
    ended = run("repair", "--json")
    assert ended.json == {"rows": [], "is_repaired": False, "saved": None}


def test_the_doctor_counts_corrupt_rows_and_names_the_command(run: Run, place: Place) -> None:
    corrupt(place, Case("memory_contents", "content_data", "{"))
    corrupt(place, Case("conversations", "pipeline_result", "{"))
    finding = _rows_finding(run)
    assert finding["state"] == "warning"
    assert "2 corrupt rows: 1 in conversations, 1 in memory_contents" in finding["found"]
    assert "recollect repair" in finding["fix"]
    assert SECRET not in json.dumps(finding)


@pytest.mark.parametrize("case", ANYWHERE + IN_SQLITE, ids=lambda case: f"{case.table}.{case.column}")
def test_every_corrupt_row_is_found_and_repaired(run: Run, place: Place, case: Case) -> None:
    row_id = corrupt(place, case)
    listed = run("repair", "--dry-run", "--json")
    row, *others = listed.json["rows"]
    assert not others or case.table == "memory_run_stages"  # of one run all are corrupt
    assert (row["table"], case.column in row["columns"]) == (case.table, True)
    assert row_id in row["row_id"] or case.table == "conversation_messages"
    assert SECRET not in listed.out
    ended = run("repair", "--yes", "--save", "saved.jsonl", "--json")
    assert ended.json["is_repaired"]
    assert SECRET not in ended.out
    left = run("repair", "--dry-run", "--json").json["rows"]
    assert [each["outcome"] for each in left] == (["left"] if row["outcome"] == "left" else [])


def test_a_fact_with_corrupt_columns_beside_its_text_is_known_again(run: Run, place: Place) -> None:
    before = _texts(place)
    for column in ("content_data", "learned_at", "valid_from", "content_type"):
        corrupt(place, Case("memory_contents", column, SECRET))
    assert len(_texts(place)) == len(before) - 1
    run("repair", "--yes", "--save", "saved.jsonl")
    assert _texts(place) == before


def test_rows_are_saved_as_they_were_for_their_owner_alone(run: Run, place: Place, folder: Path) -> None:
    content_id = corrupt(place, Case("memory_contents", "content_text", b"\xff\x00"))
    ended = run("repair", "--yes", "--save", "saved.jsonl")
    saved = folder / "saved.jsonl"
    assert str(saved.name) in ended.told
    (line,) = saved.read_text().splitlines()
    told = json.loads(line)
    assert (told["table"], told["row"]["content_id"]) == ("memory_contents", content_id)
    assert told["row"]["content_text"] == {"base64": "/wA="}
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert len(_texts(place)) == 1


def test_nothing_is_changed_without_consent_nor_over_a_file(run: Run, place: Place, folder: Path) -> None:
    corrupt(place, Case("memory_contents", "content_type", SECRET))
    assert run("repair").code == 2  # nobody can be asked here
    (folder / "saved.jsonl").write_text("mine")
    assert run("repair", "--yes", "--save", "saved.jsonl").code == 1
    assert (folder / "saved.jsonl").read_text() == "mine"
    assert len(run("repair", "--dry-run", "--json").json["rows"]) == 1


def test_a_conversation_without_an_owner_is_left_to_a_person(run: Run, place: Place) -> None:
    corrupt(place, Case("conversations", "agent_id", ""))
    ended = run("repair", "--yes", "--save", "saved.jsonl", "--json")
    assert [row["outcome"] for row in ended.json["rows"]] == ["left"]
