"""The labelled users of the benchmark, and the figures of what is known of them."""

import asyncio

import pytest

from benchmarks.learning.labels import HALVES
from benchmarks.learning.state_figures import measure_states
from benchmarks.learning.states import CHANGED, User
from benchmarks.learning.suite import users_of
from benchmarks.quality.everything import KeepsEverything
from recollect.memory.offline import OfflineExtractor

USERS = [user for half in HALVES for user in users_of(half)]


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
def test_the_labels_of_a_user_are_sound(user: User) -> None:
    assert user.sessions
    assert user.wanted
    assert all(session and session[0].role == "user" for session in user.sessions)
    assert all(wanted.kind in ("fact", "event", "health", "instruction") for wanted in user.wanted)
    assert all(unwanted.why for unwanted in user.unwanted)


def test_there_are_changes_instructions_allergies_and_questions() -> None:
    assert sum(unwanted.why == CHANGED for user in USERS for unwanted in user.unwanted) >= 80
    assert sum(wanted.kind == "instruction" for user in USERS for wanted in user.wanted) >= 60
    assert sum(wanted.kind == "health" for user in USERS for wanted in user.wanted) >= 40
    assert sum(len(user.questions) for user in USERS) >= 60


def test_the_figures_of_users_tell_good_learning_from_bad() -> None:
    (user,) = [each for each in USERS if each.name == "widower"]
    good = asyncio.run(measure_states(OfflineExtractor(), [user])).sample()
    assert good["allergies and diet found"] == 100
    assert good["changes left standing"] == 0
    assert good["answers outdated"] == 0
    assert good["signed as written"] == 100
    bad = asyncio.run(measure_states(KeepsEverything(), [user])).sample()
    assert bad["instructions found"] == 0
    assert bad["unread"] == bad["entries"]
