"""A limit in the settings shows the model what it would show it with a session of the SDK."""

from pathlib import Path
from typing import Any

import agents
import pytest

import recollect
from recollect.testing.contract import in_event_loop

from .scenarios import RUNS, Scenario, answer, both_sessions, call, in_short, play, thought

STORY = Scenario(
    ["1+2?", "weather?", "thanks", "bye"],
    lambda: [
        [thought("add"), call("add", a=1, b=2)],
        answer("3"),
        [thought("both"), call("weather", "p", city="Paris"), call("weather", "r", city="Rome")],
        answer("sunny"),
        answer("welcome"),
        answer("bye"),
    ],
    "URCOAURCCOOAUAUA",
)
SETTINGS: dict[str, Any] = {
    "ours": recollect.SessionSettings,
    "theirs": agents.SessionSettings,
    "a dict": dict,
}


@pytest.mark.parametrize("run_kind", ["run", "run_streamed"])
@pytest.mark.parametrize("limit", [0, 2, 3, 7, 100])
def test_a_limit_of_the_session(tmp_path: Path, limit: int, run_kind: str) -> None:
    settings = recollect.SessionSettings(limit=limit)
    with both_sessions(tmp_path, session_settings=settings) as (ours, theirs):
        found, expected = play(ours, STORY, RUNS[run_kind]), play(theirs, STORY, RUNS[run_kind])
    assert found == expected
    assert in_short(found.stored[-1]) == STORY.stored
    assert len(found.shown[-1]) <= limit + 1


@pytest.mark.parametrize("limit", [0, 3, None])
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_limit_of_the_run(tmp_path: Path, kind: str, limit: int | None) -> None:
    settings = SETTINGS[kind](limit=limit)
    with both_sessions(tmp_path) as sessions:
        found, expected = (play(s, STORY, RUNS["run_streamed"], session_settings=settings) for s in sessions)
    assert found == expected
    assert in_short(found.stored[-1]) == STORY.stored
    assert len(found.shown[-1]) <= (len(STORY.stored) - 1 if limit is None else limit + 1)


@pytest.mark.parametrize("of_run", [None, 0, 7])
@pytest.mark.parametrize(
    "kind",
    [
        "ours",
        "theirs",
        "a dict",
    ],
)
def test_a_limit_of_the_run_goes_before_one_of_the_session(
    tmp_path: Path, kind: str, of_run: int | None
) -> None:
    of_session, override = SETTINGS[kind](limit=4), agents.SessionSettings(limit=of_run)
    with both_sessions(tmp_path, session_settings=of_session) as sessions:
        found, expected = (play(s, STORY, RUNS["run"], session_settings=override) for s in sessions)
    assert found == expected
    assert len(found.shown[-1]) <= (4 if of_run is None else of_run) + 1


EVERY_SESSION: dict[str, Any] = {
    "SQLite": lambda: recollect.SQLiteSession("s"),
    "advanced": lambda: recollect.AdvancedSQLiteSession(session_id="s"),
    "in memory": lambda: recollect.InMemorySession("s"),
    "from a dict": lambda: recollect.SQLiteSession("s", session_settings={"limit": 5}),
    "from the SDK": lambda: recollect.SQLiteSession("s", session_settings=agents.SessionSettings(5)),
    "encrypted": lambda: recollect.EncryptedSession("s", recollect.SQLiteSession("s"), "a key"),
    "retrying": lambda: recollect.RetryingSession(recollect.InMemorySession("s")),
}


@pytest.mark.parametrize("kind", EVERY_SESSION)
@in_event_loop
async def test_the_limit_of_a_session_can_be_set_as_in_the_sdk(kind: str) -> None:
    async with EVERY_SESSION[kind]() as session:
        await session.add_items([{"role": "user", "content": str(number)} for number in range(6)])
        session.session_settings.limit = 2
        assert [item["content"] for item in await session.get_items()] == ["4", "5"]
        session.session_settings.limit = None
        assert len(await session.get_items()) == 6


def test_a_limit_that_is_set_is_checked() -> None:
    settings = recollect.SessionSettings()
    with pytest.raises(ValueError, match="negative"):
        settings.limit = -1
    assert (settings.limit, settings.to_dict()) == (None, {"limit": None})


@in_event_loop
async def test_a_session_without_settings_can_be_encrypted() -> None:
    class Slots:
        """A session of somebody else, that takes no attributes."""

        __slots__ = ("session_id",)
        get_items = add_items = pop_item = clear_session = lambda *_: None

    assert recollect.EncryptedSession("s", Slots(), "a key").session_settings is None  # type: ignore[arg-type]
