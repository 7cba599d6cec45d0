"""A process is killed before statements and commits of a turn: nothing is lost, and nothing is doubled."""

import asyncio
import multiprocessing
import os
import signal

import pytest

from recollect.providers.errors import TurnRunningError
from recollect.providers.openai.options import ChatOptions
from recollect.testing.contract import in_event_loop

from .chats import Chat, Place, open_chat, short
from .killed import LEASE, run_turn

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]

_EVERY = int(os.environ.get("RECOLLECT_KILL_EVERY", "4"))  # statements; 1 takes a quarter of an hour
_STATEMENTS = 25  # that a turn takes at least
# Forked from a server that has imported everything: a start takes no time.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.providers_openai.killed", "agents"])


def run(place: Place, conversation_id: str, turn_id: str, at: int) -> int | None:
    """Run a turn in a process; the number of its statements, `None` if it was killed."""
    told, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=run_turn, args=(theirs, place.url, conversation_id, turn_id, at))
    process.start()
    theirs.close()
    try:
        statements: int | None = told.recv()
    except EOFError:
        statements = None
    process.join()
    assert process.exitcode == (-signal.SIGKILL if statements is None else 0)
    return statements


async def check(chat: Chat, turns: int) -> None:
    """Every question has one answer, in the conversation, in the session and in the log."""
    said = [text for _, text in await chat.said()]
    assert len(said) == 2 * turns
    assert short(await chat.items()) == "UA" * turns
    events = await chat.provider.inspector.events_of(chat.conversation, limit=1000)
    assert [event.role for event in events] == ["user", "assistant"] * turns
    assert [event.text for event in events] == said
    assert [turn["status"] for turn in await chat.turns()] == ["done"] * turns


async def send_again(chat: Chat, turn_id: str) -> None:
    """Send a turn again, as soon as nobody holds its conversation."""
    async with asyncio.timeout(300):
        while True:
            try:
                await chat.say("Is anybody there?", turn_id)
            except TurnRunningError:  # until the lease of the killed process ends
                await asyncio.sleep(0.05)
            else:
                return


@in_event_loop
async def test_a_turn_that_is_killed_anywhere_and_sent_again_is_there_once(place: Place) -> None:
    options = ChatOptions(lease_seconds=LEASE, lock_seconds=60)
    async with open_chat(place, options=options) as chat:
        conversation_id = (await chat.begin()).conversation_id
        await chat.say("Hello.")
        kills = 0
        # A renewal of the lease is a statement too, so their number differs from turn to turn.
        while run(place, conversation_id, f"turn-{kills}", 1 + kills * _EVERY) is None:
            await send_again(chat, f"turn-{kills}")
            kills += 1
            await check(chat, kills + 1)
        await check(chat, kills + 2)
        assert kills * _EVERY > _STATEMENTS
