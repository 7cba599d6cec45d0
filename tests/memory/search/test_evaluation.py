"""The figures of a benchmark, the collections it reads, and the command that makes them."""

import argparse
import json
from math import log2
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search.collections import Question, Sample, read_collection
from benchmarks.search.evaluation import (
    Answered,
    Results,
    Unanswerable,
    figures,
    figures_by_kind,
    figures_of_cut,
    hit,
    ndcg,
    rank_sessions,
    recall,
)
from benchmarks.search.recall import share_out
from recollect.cli.bench import add_bench_parser
from recollect.errors import ImportFormatError

from ...sessions.postgres.database import sql

WANTED = frozenset({"a", "b"})


def of(*texts: str) -> Results:
    """Results that each show the messages of one letter."""
    return [frozenset(text) for text in texts]


def test_recall_is_the_share_of_what_is_wanted() -> None:
    assert recall(of("x", "a", "y", "b"), WANTED, 3) == 0.5
    assert recall(of("x", "a", "y", "b"), WANTED, 4) == 1.0
    assert recall([], WANTED, 4) == 0.0


def test_an_entry_shows_all_of_its_evidence() -> None:
    assert recall(of("xab"), WANTED, 1) == 1.0
    assert hit(of("xy", "xab"), WANTED, 1) == 0.0
    assert hit(of("xy", "xab"), WANTED, 2) == 1.0


def test_ndcg_counts_an_earlier_place_more() -> None:
    assert ndcg(of("a", "b"), WANTED, 10) == ndcg(of("b", "a"), WANTED, 10) == 1.0
    assert ndcg(of("x", "a"), WANTED, 10) == pytest.approx((1 / log2(3)) / (1 + 1 / log2(3)))
    assert ndcg(of(*"xxxxxxxxxx", "a"), WANTED, 10) == 0.0


def test_showing_the_same_message_again_gains_nothing() -> None:
    assert ndcg(of("a", "a"), WANTED, 10) == ndcg(of("a"), WANTED, 10)


def test_no_more_can_be_gained_than_the_cut_has_places() -> None:
    assert ndcg(of("a"), WANTED, 1) == 1.0


def answered(found: Results, kind: str = "easy", **more: Any) -> Answered:
    return Answered(kind, WANTED, found, 0.002, **more)


def test_figures_are_means_over_the_questions() -> None:
    right, wrong = answered(of("a", "b")), answered(of("x"), "hard")
    together = figures([right, wrong])
    assert together["recall@5"] == together["hit@1"] == together["ndcg@10"] == 0.5
    assert together["median_ms"] == together["p95_ms"] == pytest.approx(2.0)
    assert figures_by_kind([right, wrong])["hard"]["hit@5"] == 0.0
    assert figures_by_kind([right, wrong])["easy"]["recall@20"] == 1.0


def test_figures_of_sessions_are_those_of_the_sessions_that_hold_the_answer() -> None:
    told = figures([answered(of("x"), sessions=(of("2", "1"), frozenset({"1", "3"})))])
    assert (told["session_hit@1"], told["session_recall@5"]) == (0.0, 0.5)


def test_of_no_questions_there_are_no_figures() -> None:
    assert figures([]) == {}


def test_a_session_ranks_by_its_best_messages() -> None:
    scored = [("one", 0.9), ("two", 0.85), ("two", 0.8), ("two", 0.8), ("three", 0.1)]
    assert rank_sessions(scored) == [frozenset({each}) for each in ("two", "one", "three")]


def test_a_cut_is_measured_by_what_it_removes_and_what_it_keeps() -> None:
    asked = [answered(of("a", "b"), found_above_cut=of("a")), answered(of("a"), found_above_cut=of("a"))]
    told = figures_of_cut(asked, [Unanswerable(3, 0), Unanswerable(0, 0), Unanswerable(3, 1)])
    assert told["nothing"] == pytest.approx(1 / 3)
    assert told["nothing_above_cut"] == pytest.approx(2 / 3)
    assert (told["recall@10"], told["recall@10_above_cut"]) == (0.75, 0.5)
    assert told["recall_kept"] == pytest.approx(2 / 3)


def test_without_a_cut_nothing_is_said_of_it() -> None:
    assert figures_of_cut([answered(of("a"))], [Unanswerable(3)]) == {"unanswerable": 1, "nothing": 0.0}


# --- collections ---


def plain(**changes: Any) -> dict[str, Any]:
    """A sample of two sessions with three participants."""
    sample = {
        "id": "first",
        "sessions": [
            {
                "time": "2024-03-15T00:00:00+00:00",
                "messages": [
                    {"id": "1", "role": "user", "name": "Ada", "content": "I grow tomatoes on the balcony."},
                    {"id": "2", "role": "assistant", "content": "How nice!"},
                ],
            },
            {
                "time": "2024-03-16",
                "messages": [{"id": "3", "role": "user", "name": "Ada", "content": "I sail at weekends."}],
            },
        ],
        "questions": [
            {"text": "Where on the balcony does Ada grow tomatoes?", "evidence": ["1"], "kind": "single"},
            {"text": "When does Ada sail?", "evidence": ["3", "1"]},
        ],
    }
    return sample | changes


def locomo() -> dict[str, Any]:
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "collection.json"


def read(path: Path, *samples: Any) -> list[Sample]:
    path.write_text(json.dumps(samples))
    return read_collection(path)


def test_a_sample_is_read_with_names_times_and_ids(path: Path) -> None:
    (sample,) = read(path, plain())
    assert (sample.id, sample.user_id) == ("first", "Ada")
    assert [[each.message_id for each in session.messages] for session in sample.sessions] == [
        ["1", "2"],
        ["3"],
    ]
    assert sample.sessions[0].messages[0].name == "Ada"
    assert [session.time.isoformat() for session in sample.sessions] == [
        "2024-03-15T00:00:00+00:00",
        "2024-03-16T00:00:00+00:00",
    ]
    assert [(each.kind, set(each.evidence)) for each in sample.questions] == [
        ("single", {"1"}),
        ("other", {"1", "3"}),
    ]
    assert sample.session_of == {"1": 0, "2": 0, "3": 1}
    bare = sample.without_names()
    assert {each.name for session in bare.sessions for each in session.messages} == {None}
    assert bare.user_id == "user"


def test_locomo_is_read_as_it_is_published(path: Path) -> None:
    (sample,) = read(path, locomo())
    messages = [message for session in sample.sessions for message in session.messages]
    assert [each.message_id for each in messages] == ["D1:1", "D1:2", "D2:1"]
    assert [each.speaker for each in messages] == ["Ada", "Ben", "Ben"]
    assert messages[2].content == "Look at this. a photo of a sailing boat"
    assert [(each.kind, set(each.evidence)) for each in sample.questions] == [
        ("single-hop", {"D1:1"}),
        ("multi-hop", {"D1:2", "D2:1"}),
    ]


def message(**changes: Any) -> dict[str, Any]:
    given = {"id": "1", "role": "user", "content": "I grow tomatoes."} | changes
    return plain(sessions=[{"time": "2024-03-15", "messages": [given]}])


@pytest.mark.parametrize(
    ("sample", "complaint"),
    [
        (1, "sample 0 must be an object"),
        ({}, "sample 0: sessions must be a list"),
        (plain(questions=None), "sample 0: questions must be a list"),
        (plain(questions=[]), "has no questions with evidence"),
        (plain(questions=[{"text": "?", "evidence": []}]), "question 0: evidence must be the ids"),
        (plain(questions=[{"text": "?", "evidence": ["9"]}]), "question 0: evidence names '9'"),
        (plain(questions=[{"text": " ", "evidence": ["1"]}]), "question 0: text must be a text"),
        (plain(sessions=[{"time": "soon", "messages": [{}]}]), "session 0: time must be a time in ISO 8601"),
        (plain(sessions=[{"time": "2999-01-01", "messages": [{"id": "1"}]}]), "session 0: time must not be"),
        (plain(sessions=[{"time": "2024-03-15", "messages": []}]), "session 0 has no messages"),
        (message(id=7), "session 0, message 0: id must be a text"),
        (message(role="robot"), "session 0: message 0 must have a role"),
        (message(content=""), "session 0: content of message 0 must not be empty"),
        (plain(sessions=plain()["sessions"] * 2), "two messages with the id '1'"),
        ({"conversation": {}, "qa": [{}]}, "is not a LoCoMo sample"),
    ],
)
def test_a_sample_that_cannot_be_measured_is_a_clear_error(path: Path, sample: Any, complaint: str) -> None:
    with pytest.raises(ImportFormatError, match=complaint):
        read(path, sample)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        (None, "cannot be read"),
        ("[]", "must hold a list of samples"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_another_file_is_a_clear_error(path: Path, text: str | None, complaint: str) -> None:
    if text is not None:
        path.write_text(text)
    with pytest.raises(ImportFormatError, match=complaint):
        read_collection(path)


def test_each_question_is_asked_of_one_other_sample_evenly() -> None:
    samples = [
        Sample(name, (), tuple(Question(f"{name}{place}", frozenset("1")) for place in range(4)))
        for name in "abc"
    ]
    dealt = share_out(samples)
    assert [len(each) for each in dealt] == [4, 4, 4]
    for sample, foreign in zip(samples, dealt, strict=True):
        assert not {question.text for question in foreign} & {question.text for question in sample.questions}
    assert len({question.text for foreign in dealt for question in foreign}) == 12
    assert share_out(samples[:1]) == [()]


def test_fewer_questions_are_taken_evenly() -> None:
    sample = Sample("a", (), tuple(Question(str(place), frozenset("1")) for place in range(10)))
    assert [each.text for each in sample.with_questions(3).questions] == ["0", "3", "6"]
    assert sample.with_questions(10) is sample


# --- the command ---


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_bench_parser(parser.add_subparsers())
    options = parser.parse_args(["bench", "recall", *arguments])
    return int(options.run(options))


@pytest.fixture
def data(path: Path) -> str:
    other = {
        "time": "2024-01-01",
        "messages": [{"id": "1", "role": "user", "content": "My cat is called Kira and sleeps all day."}],
    }
    second = plain(
        sessions=[other], questions=[{"text": "What is my cat called?", "evidence": ["1"], "kind": "pet"}]
    )
    path.write_text(json.dumps([plain(), second]))
    return str(path)


def test_the_command_tells_figures_as_json(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data, "--sessions", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["searched"], told["names"]) == ("messages", True)
    report = told["collections"]["collection"]
    assert (report["questions"], report["questions_by_kind"]) == (3, {"other": 1, "pet": 1, "single": 1})
    assert report["all"]["recall@5"] == report["all"]["session_recall@5"] == 1.0
    assert report["kinds"]["single"]["hit@1"] == 1.0
    assert report["without_answer"]["unanswerable"] == 3


def test_the_command_searches_what_was_learned(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data, "--learned", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["searched"] == "entries"
    assert told["collections"]["collection"]["kinds"]["pet"]["recall@20"] == 1.0


def test_the_command_prints_tables(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data, "--no-names", "--embedder", "none", "--limit-samples", "1", "--questions", "1") == 0
    head, *tables = [part.splitlines() for part in capsys.readouterr().out.split("\n\n")]
    blocks, quality, cuts, reliability = tables
    assert head == ["Search of messages, without names, embedder none"]
    assert blocks[0] == "What the block of recall shows, at 500 tokens"
    assert blocks[1].split()[:4] == ["collection", "evidence", "tokens", "empty"]
    assert blocks[2].split()[:2] == ["collection", "1.000"]
    assert quality[0].split()[:6] == ["collection", "kind", "questions", "R@5", "R@10", "R@20"]
    assert quality[1].split()[:4] == ["collection", "all", "1", "1.000"]
    assert cuts[0].startswith("Questions without an answer")
    assert cuts[2].split()[:3] == ["collection", "0", "-"]
    assert reliability[0] == "The chance of a hit as stated, and the share that is relevant"


def test_the_command_leaves_nothing_in_a_file(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kept.db"
    assert run(data, "--database", str(file), "--embedder", "none", "--json") == 0
    assert json.loads(capsys.readouterr().out)["collections"]["collection"]["questions"] == 3
    assert b"tomatoes" not in file.read_bytes()


def test_the_command_measures_on_postgresql_and_leaves_nothing_there(
    data: str, empty_postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(data, "--database", empty_postgres, "--json") == 0
    report = json.loads(capsys.readouterr().out)["collections"]["collection"]
    assert (report["questions"], report["all"]["recall@5"]) == (3, 1.0)
    for table in ("memories", "conversations", "conversation_messages"):
        assert sql(empty_postgres, f"SELECT count(*) FROM {table}") == [(0,)]
