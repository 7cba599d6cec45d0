"""What a run costs is stored while it runs, also through sessions around the one that stores it."""

from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, Runner
from agents.testing import ScriptedModel, assistant_message

from recollect import AdvancedSQLiteSession, EncryptedSession, RetryingSession, StrategySession, Trim
from recollect.testing.contract import in_event_loop


def encrypted(session: Any) -> Any:
    return EncryptedSession("s", session, "a key")


def trimmed(session: Any) -> Any:
    return StrategySession(session, Trim(max_user_turns=2))


AROUND: dict[str, Callable[[Any], Any]] = {
    "alone": lambda session: session,
    "encrypted": encrypted,
    "with a strategy": trimmed,
    "retrying": RetryingSession,
    "both": lambda session: trimmed(encrypted(session)),
}


@pytest.mark.parametrize("around", list(AROUND))
@pytest.mark.parametrize("stores_usage", [True, False])
@in_event_loop
async def test_usage_is_stored_through_wrappers(around: str, stores_usage: bool) -> None:
    answers = [[assistant_message("An answer.", item_id=f"msg_{number}")] for number in range(4)]
    agent = Agent(name="Assistant", model=ScriptedModel(answers))
    inner = AdvancedSQLiteSession(session_id="s", store_usage=stores_usage)
    session = AROUND[around](inner)
    requests = 0
    for number in range(4):
        result = await Runner.run(agent, f"question {number}", session=session)
        requests += result.context_wrapper.usage.requests
    usage = await session.get_session_usage()
    assert requests == 4
    if stores_usage:
        assert (usage["requests"], usage["total_turns"]) == (4, 4)
    else:
        assert usage is None
    await session.aclose()
