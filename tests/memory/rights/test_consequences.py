"""What becomes of entries when evidence goes: decided over values."""

import pytest

from recollect.memory.rights.consequences import AffectedEntry, EvidenceGroup, decide_changes, successions


def held(name: str, run_id: str | None = "r1", **more: str | None) -> AffectedEntry:
    return AffectedEntry(name, 0, f"words of {name}", run_id, **more)


def group(source: str, whole: bool, sequence: int = 0) -> EvidenceGroup:
    return EvidenceGroup("a", source, f"words of {source}", whole, sequence)


@pytest.mark.parametrize(
    ("run_id", "groups", "becomes"),
    [
        pytest.param("r1", [group("r1", False)], "removed", id="its only group is broken"),
        pytest.param("r1", [group("r1", False), group("r2", False)], "removed", id="all are broken"),
        pytest.param("r1", [group("r1", True), group("r2", False)], "kept", id="the shown group is whole"),
        pytest.param("r1", [group("r1", False), group("r2", True)], "words of r2", id="another is whole"),
        pytest.param(
            "r1",
            [group("r1", False), group("r3", True, 3), group("r2", True, 2)],
            "words of r2",
            id="the oldest of those that are whole",
        ),
        pytest.param("r1", [], "removed", id="it cited nothing that the run had read"),
        pytest.param("r1", [group("r2", True)], "words of r2", id="it cited nothing, and another is whole"),
        pytest.param(None, [group("r2", False)], "kept", id="a person wrote it, and cited nothing"),
        pytest.param(None, [group("", False)], "removed", id="a person reworded what is gone"),
        pytest.param(
            None, [group("", False), group("r2", True)], "words of r2", id="and another says so too"
        ),
        pytest.param(None, [group("", True), group("r2", False)], "kept", id="and it is whole"),
    ],
)
def test_an_entry_stands_on_a_whole_group_in_the_words_of_one(
    run_id: str | None, groups: list[EvidenceGroup], becomes: str
) -> None:
    standing = decide_changes([held("a", run_id)], groups)
    assert [entry.content_id for entry in standing.removed] == (["a"] if becomes == "removed" else [])
    words = [each.wording for _, each in standing.reworded]
    assert words == ([becomes] if becomes.startswith("words") else [])


def test_an_entry_is_judged_by_its_own_groups_alone() -> None:
    standing = decide_changes([held("a"), held("b")], [group("r1", True)])
    assert [entry.content_id for entry in standing.removed] == ["b"]


OLD = held("old", retired_at="t1", superseded_by="b1")


@pytest.mark.parametrize(
    ("gone", "retired_at", "superseded_by"),
    [
        pytest.param([held("b1")], None, None, id="it comes back"),
        pytest.param([held("b1", retired_at="t2", superseded_by="c")], "t2", "c", id="the next takes over"),
        pytest.param(
            [
                held("b1", retired_at="t2", superseded_by="b2"),
                held("b2", retired_at="t3", superseded_by="c"),
            ],
            "t3",
            "c",
            id="the next after two",
        ),
        pytest.param(
            [held("b1", retired_at="t2", superseded_by="b2"), held("b2")], None, None, id="back after two"
        ),
        pytest.param([held("b1", retired_at="t2")], "t2", None, id="what retired the one retires the other"),
        pytest.param(
            [
                held("b1", retired_at="t2", superseded_by="b2"),
                held("b2", retired_at="t3", superseded_by="b1"),
            ],
            "t3",
            "b1",
            id="a circle ends",
        ),
    ],
)
def test_what_was_superseded_by_what_is_gone_comes_back_or_is_superseded_by_the_next(
    gone: list[AffectedEntry], retired_at: str | None, superseded_by: str | None
) -> None:
    (change,) = successions(gone, [OLD])
    assert (change.entry, change.retired_at, change.superseded_by) == (OLD, retired_at, superseded_by)


@pytest.mark.parametrize(
    ("own_end", "began", "following", "ends"),
    [
        ("2024-05", "2024-05", None, None),
        ("2023", "2024-05", None, "2023"),
        (None, "2024-05", None, None),
        ("2024-05", "2024-05", "c", "2025"),
        ("2023", "2024-05", "c", "2023"),
        ("2024", None, None, "2024"),
    ],
)
def test_an_end_that_came_with_what_is_gone_goes_with_it(
    own_end: str | None, began: str | None, following: str | None, ends: str | None
) -> None:
    old = held("old", retired_at="t1", superseded_by="b1", valid_to=own_end)
    gone = held("b1", valid_from=began, valid_to="2025" if following else None, superseded_by=following)
    (change,) = successions([gone], [old])
    assert change.valid_to == ends


def test_what_is_gone_itself_does_not_come_back() -> None:
    first, second = held("a", superseded_by="b"), held("b")
    assert successions([first, second], [first]) == []
