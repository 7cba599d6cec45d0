"""The benchmarks that print what the numbers of search were chosen by."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from benchmarks.search import fit, later_mentions
from benchmarks.search.first_minute import measure_blocks

SAID = {
    "ada": {"Where does Ada live?": "I moved to Lisbon.", "What does Ada play?": "I play the cello."},
    "bob": {"Where does Bob work?": "I work in a bakery.", "What does Bob drive?": "I drive an old van."},
}


def collection(folder: Path) -> Path:
    samples = [
        {
            "id": user,
            "sessions": [
                {
                    "time": "2024-03-15T00:00:00+00:00",
                    "messages": [
                        {"id": str(number), "role": "user", "content": text}
                        for number, text in enumerate(said.values())
                    ],
                }
            ],
            "questions": [{"text": text, "evidence": [str(number)]} for number, text in enumerate(said)],
        }
        for user, said in SAID.items()
    ]
    path = folder / "chats.json"
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path


def test_a_fit_prints_the_numbers_of_a_calibration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit.main([str(collection(tmp_path))]) == 0
    told = capsys.readouterr().out
    fitted = dict(re.findall(r"(\w+)=(-?\d+\.\d+)", told.partition("Calibration(")[2]))
    assert float(fitted["similarity"]) > 0, "an answer is nearer to a question than other texts"
    assert float(fitted["hit_coverage"]) > 0
    assert "recall@10 1.000" in told


def test_a_new_user_gets_answers_and_nothing_else() -> None:
    answers = asyncio.run(measure_blocks("first_chats.json"))
    answered = [each for each in answers if each.kind != "none"]
    silent = [each for each in answers if each.kind == "none"]
    assert (len(answered), len(silent)) == (30, 30)
    assert sum(each.is_right for each in answered) >= 27, [e.text for e in answered if not e.is_right]
    assert sum(each.is_right for each in silent) >= 27, [e.text for e in silent if not e.is_right]


def test_a_later_mention_of_somebody_else_does_not_lead_the_block() -> None:
    shown = asyncio.run(later_mentions.measure())
    assert len(shown) == 30
    assert sum(each.is_right for each in shown) >= 29, [each.question for each in shown if not each.is_right]
    assert sum(each.is_misled for each in shown) <= 2, [each.question for each in shown if each.is_misled]
