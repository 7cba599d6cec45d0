"""A run that did not read everything says so: in its status, its error, and the coverage."""

import pytest

from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore

from ..databases import Place

pytestmark = pytest.mark.anyio


async def _learn(store: MemoryStore, said: str) -> None:
    await store.record_conversation("a", "u", [{"role": "user", "content": said}])
    runner = Runner(store._database, OfflineExtractor(), RunOptions(attempts=1))
    while (task := await runner.claim("learning")) is not None:
        await runner.execute(task)


async def test_all_statements_of_a_message_are_learned_and_nothing_is_left_out(shared_place: Place) -> None:
    said = " ".join(f"I have a cat called Kiwi{number}." for number in range(30))
    async with shared_place.open() as store:
        await _learn(store, f"{said} I am allergic to latex.")
        texts = [entry.text for entry in await store.list_entries("a", "u")]
        assert len(texts) == 31
        assert "The user is allergic to latex." in texts
        (run,) = await store.list_runs()
        assert (run.left_out, run.error) == (0, None)
        assert await store.coverage() == Coverage(remembered=1)


async def test_a_run_that_left_sentences_out_counts_them_and_the_coverage_is_not_whole(
    shared_place: Place,
) -> None:
    said = "\n".join(f"The bus number {number} was late." for number in range(1200))
    async with shared_place.open() as store:
        await _learn(store, f"{said}\nI am allergic to latex.")
        assert "The user is allergic to latex." in [
            entry.text for entry in await store.list_entries("a", "u")
        ]
        (run,) = await store.list_runs()
        assert (run.status, run.left_out) == ("done", 201)
        assert run.error == "201 sentences or messages were not read whole: there were too many"
        assert (run.to_dict()["left_out"], run.to_dict()["stages"][0]["left_out"]) == (201, 201)
        coverage = await store.coverage()
        assert coverage == Coverage(partial=1)
        assert coverage.share == 0


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Ich wohne in Berlin und bin gegen Nüsse allergisch", "a language that the rules do not cover"),
        ("```\nint x = 1;\n```", "nothing but code or pasted text"),
    ],
)
async def test_a_message_that_is_not_read_is_said_in_the_run_and_in_the_coverage(
    file_place: Place, said: str, reason: str
) -> None:
    async with file_place.open() as store:
        await _learn(store, said)
        (run,) = await store.list_runs()
        assert (run.status, run.left_out) == ("done", 1)
        assert run.error is not None
        assert reason in run.error
        assert await store.coverage() == Coverage(partial=1)
