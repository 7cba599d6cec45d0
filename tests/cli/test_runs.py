"""`recollect runs`."""

import asyncio
from pathlib import Path
from typing import NoReturn

from recollect.errors import ModelRefusedError
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Excerpt
from recollect.memory.store import MemoryStore

from .conftest import TALK, Run, learn


class Refusing(OfflineExtractor):
    """A model that will not answer."""

    async def modification(self, excerpt: Excerpt) -> NoReturn:  # noqa: ARG002 - the name of the protocol
        raise ModelRefusedError("no\x1b[31m", "I will not.")


def fail(path: Path) -> None:
    async def record() -> None:
        async with MemoryStore(path, workers=1, embedder=None, extractor=Refusing()) as store:
            await store.record_conversation("assistant", "ada", TALK)
            await store.drain(60)

    asyncio.run(record())


def test_runs_are_listed_with_how_much_is_remembered(run: Run) -> None:
    conversation_id = learn()
    listed = run("runs", "list")
    assert "done" in listed.out
    assert listed.told == "1 conversation remembered, 0 pending, 0 failed\n"
    told = run("runs", "list", "--conversation", conversation_id, "--json").json
    assert told["coverage"] == {"remembered": 1, "pending": 0, "failed": 0, "partial": 0}
    shown = run("runs", "show", told["runs"][0]["run_id"]).out
    assert "messages 0 to 1 of conversation" in shown
    assert "modification by offline" in shown
    assert run("runs", "list", "--status", "failed").out == ""


def test_failed_runs_are_shown_and_tried_again(run: Run, folder: Path) -> None:
    fail(folder / "recollect.db")
    (failed,) = run("runs", "list", "--status", "failed", "--json").json["runs"]
    shown = run("runs", "show", failed["run_id"]).out
    assert "modification: " in shown
    assert "\x1b" not in shown
    assert run("runs", "retry", "--failed", "--json").json == {"retried": [failed["run_id"]]}
    assert run("runs", "retry", "--failed").out == "0 runs will be retried\n"
    assert run("worker", "--until-idle", "--json").json == {
        "remembered": 1,
        "pending": 0,
        "failed": 0,
        "partial": 0,
    }
    again = run("runs", "retry", failed["run_id"])
    assert (again.code, "no failed run" in again.told) == (1, True)


def test_a_run_that_is_not_there_is_not_found(run: Run) -> None:
    learn()
    for action in ("show", "retry"):
        ended = run("runs", action, "nobody's")
        assert (ended.code, ended.out) == (3, "")
