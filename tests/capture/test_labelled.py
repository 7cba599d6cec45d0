"""What rules note of twenty sessions, against what a careful colleague would note."""

import tomllib
from pathlib import Path

from recollect.memory.conversation import read_messages
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Excerpt
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

SESSIONS: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "labelled.toml").read_text())[
    "sessions"
]


async def noted(lines: list[str]) -> list[tuple[str, bool]]:
    """The lines that taught something, each with whether it should have."""
    said = [
        {"role": "user", "content": line[2:], "message_id": str(place)} for place, line in enumerate(lines)
    ]
    answer = await OfflineExtractor().modification(Excerpt("code:shop", "ada", read_messages(said, now())))
    places = sorted({int(place) for each in answer.value.candidates for place in each.evidence})
    return [(lines[place], lines[place].startswith("+")) for place in places]


@in_event_loop
async def test_rules_note_what_a_careful_colleague_would() -> None:
    found = [each for lines in SESSIONS.values() for each in await noted(lines)]
    wanted = [line for lines in SESSIONS.values() for line in lines if line.startswith("+")]
    wrong = [line for line, is_right in found if not is_right]
    missed = sorted(set(wanted) - {line for line, _ in found})
    assert len(SESSIONS) == 20
    assert 1 - len(wrong) / len(found) >= 0.9, wrong
    assert 1 - len(missed) / len(wanted) >= 0.7, missed
