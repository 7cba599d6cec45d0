"""The figures of a benchmark, and the command that makes them."""

import argparse
import json
from math import log2
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search.evaluation import (
    Found,
    Question,
    figures,
    figures_by_category,
    ndcg,
    read_locomo,
    recall,
)
from recollect.cli.bench import add_bench_parser
from recollect.errors import ImportFormatError

WANTED = frozenset({"a", "b"})


def test_recall_is_the_share_of_what_is_wanted() -> None:
    assert recall(["x", "a", "y", "b"], WANTED, 3) == 0.5
    assert recall(["x", "a", "y", "b"], WANTED, 4) == 1.0
    assert recall([], WANTED, 4) == 0.0


def test_ndcg_counts_an_earlier_place_more() -> None:
    assert ndcg(["a", "b"], WANTED, 10) == ndcg(["b", "a"], WANTED, 10) == 1.0
    assert ndcg(["x", "a"], WANTED, 10) == pytest.approx((1 / log2(3)) / (1 + 1 / log2(3)))
    assert ndcg(["x"] * 10 + ["a"], WANTED, 10) == 0.0


def test_no_more_can_be_gained_than_the_cut_has_places() -> None:
    assert ndcg(["a"], WANTED, 1) == 1.0


def found(turns: list[str], sessions: list[str], evidence: set[str], category: int = 4) -> Found:
    return Found(Question("?", category, frozenset(evidence)), turns, sessions, 0.002)


def test_figures_are_means_over_the_questions() -> None:
    right = found(["D1:1"], ["session_1"], {"D1:1"})
    wrong = found(["D1:1"], ["session_1"], {"D2:3"}, category=2)
    together = figures([right, wrong])
    assert together["turn_recall@5"] == together["session_hit@1"] == together["turn_ndcg@10"] == 0.5
    assert together["milliseconds"] == pytest.approx(2.0)
    assert figures_by_category([right, wrong])["temporal"]["session_ndcg@5"] == 0.0
    assert figures_by_category([right, wrong])["single-hop"]["session_recall@10"] == 1.0


def test_of_no_questions_there_are_no_figures() -> None:
    assert figures([]) == {}


def sample() -> dict[str, Any]:
    def turn(place: str, speaker: str, text: str, **more: str) -> dict[str, str]:
        return {"dia_id": place, "speaker": speaker, "text": text, **more}

    return {
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn("D1:1", "Ada", "I grow tomatoes."),
                turn("D1:2", "Ben", "I sail."),
            ],
            "session_2_date_time": "9:10 am on 1 June, 2023",
            "session_2": [turn("D2:1", "Ben", "Look at this.", blip_caption="a photo of a sailing boat")],
        },
        "qa": [
            {"question": "What does Ada grow?", "evidence": ["D1:1"], "category": 4},
            {"question": "Where does Ben sail?", "evidence": ["D1:2; D:2:1", "D9:9"], "category": 1},
            {"question": "Who knows?", "evidence": [], "category": 3},
            {"question": "Does Ada sail?", "evidence": ["D1:2"], "category": 5},
        ],
    }


def test_a_collection_is_read_as_it_is_published() -> None:
    (read,) = read_locomo([sample()])
    assert read.speakers == ("Ada", "Ben")
    assert [turn.id for turn in read.turns] == ["D1:1", "D1:2", "D2:1"]
    assert read.turns[2].text == "Look at this. a photo of a sailing boat"
    assert [(question.category, set(question.evidence)) for question in read.questions] == [
        (4, {"D1:1"}),
        (1, {"D1:2", "D2:1"}),
    ]


@pytest.mark.parametrize("told", [{}, [1], [{"qa": []}], [{"conversation": {}, "qa": [{}]}], None, "text"])
def test_another_file_is_a_clear_error(told: Any) -> None:
    with pytest.raises(ImportFormatError, match="this is not a LoCoMo file"):
        read_locomo(told)


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_bench_parser(parser.add_subparsers())
    options = parser.parse_args(["bench", "locomo", *arguments])
    return int(options.run(options))


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample()]))
    return str(path)


def test_the_command_tells_figures_as_json(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--data", data, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["questions"], told["embedder"]) == (2, "local")
    assert told["all"]["turn_recall@5"] == 1.0
    assert set(told["categories"]) == {"single-hop", "multi-hop"}


def test_the_command_shows_what_each_part_adds(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--data", data, "--ablate", "--embedder", "none") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 questions, embedder: none"
    without_text = next(line for line in lines if line.startswith("without text"))
    assert without_text.split()[2] != next(line for line in lines if line.startswith("all")).split()[1]


@pytest.mark.parametrize(
    ("text", "complaint"), [("{", "is not JSON"), (None, "cannot be read"), ("[1]", "not a LoCoMo file")]
)
def test_a_file_that_cannot_be_measured_is_a_clear_error(
    tmp_path: Path, text: str | None, complaint: str
) -> None:
    path = tmp_path / "data.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ImportFormatError, match=complaint):
        run("--data", str(path))
