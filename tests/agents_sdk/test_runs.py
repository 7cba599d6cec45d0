"""A conversation on our session is, item by item, what it is on a session of the SDK."""

from pathlib import Path

import pytest

from .scenarios import RUNS, SCENARIOS, Scenario, both_sessions, in_short, play


@pytest.mark.parametrize("run_kind", RUNS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_conversation_is_the_same_as_on_the_sdks_session(
    tmp_path: Path, scenario: str, run_kind: str
) -> None:
    story, run_turn = SCENARIOS[scenario], RUNS[run_kind]
    with both_sessions(tmp_path) as (ours, theirs):
        found, expected = play(ours, story, run_turn), play(theirs, story, run_turn)
    print(found.ends, [in_short(s) for s in found.stored])
    assert found == expected
    assert in_short(found.stored[-1]) == story.stored
    assert [*story.ends, *[""] * (len(story.turns) - len(story.ends))] == found.ends
