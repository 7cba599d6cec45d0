"""Stages that ask no model are stored together: all of a run, or nothing of it."""

import pytest

from recollect.errors import ExtractionError
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .extractors import ScriptedExtractor
from .kit import LONGEST, failed_once, known_texts, record, run_of, when, working


class FreeExtractor(ScriptedExtractor):
    """Costs little to repeat, as rules do."""

    asks_no_model = True


@in_event_loop
async def test_a_run_stores_every_stage_and_what_it_learned(shared_place: Place) -> None:
    async with working(shared_place, extractor=FreeExtractor()) as (store, _):
        conversation = await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        run = await run_of(store, conversation)
        assert [stage.stage for stage in run.stages] == ["modification", "update", "mind"]
        assert await known_texts(store) == ["I went to the zoo"]


@pytest.mark.parametrize("stage", ["update", "mind"])
@in_event_loop
async def test_a_run_that_fails_half_way_has_stored_nothing_and_starts_anew(
    shared_place: Place, stage: str
) -> None:
    extractor = FreeExtractor()
    extractor.next(stage, ExtractionError("not now"))  # type: ignore[arg-type]
    hold = extractor.hold("modification")
    async with working(shared_place, extractor=extractor) as (store, _):
        conversation = await record(store, "I went to the zoo")
        await hold.wait()
        again = extractor.hold("modification")
        hold.go.set()
        failed = await failed_once(store, conversation)
        await again.wait()
        assert ([each.stage for each in failed.failures], failed.stages) == ([stage], ())
        assert await known_texts(store) == []
        again.go.set()
        await when(store, conversation, status="done")
        assert await known_texts(store) == ["I went to the zoo"]
        assert [call.stage for call in extractor.calls].count("modification") == 2


@in_event_loop
async def test_a_store_without_workers_says_that_there_is_work(file_place: Place) -> None:
    told: list[str] = []
    async with file_place.open(on_work=lambda: told.append("work")) as store:
        await record(store, "I went to the zoo")
    assert told == ["work"]


@in_event_loop
async def test_the_delay_of_a_tenant_is_its_own(file_place: Place) -> None:
    async with file_place.open(all_tenants=True) as store:
        await record(store.for_tenant("busy"), "I went to the zoo")
        await _age(store, 3600)
        assert 3600 <= await store.monitor.seconds_behind("busy") < 7200
        assert await store.monitor.seconds_behind("idle") == 0


async def _age(store: MemoryStore, seconds: float) -> None:
    from recollect.sql.scripts import Statement, run_all

    sql = "UPDATE memory_queue SET available_at = available_at - ?1"
    await store._database.write(lambda: run_all([Statement(sql, (seconds,))]))
