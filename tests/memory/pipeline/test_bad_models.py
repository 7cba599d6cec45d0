"""Models that answer badly, through the pipeline: only what was said is stored, and the rest is counted."""

import json
from typing import Any

import pytest

from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.run import Run
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Reply, Usage

from ..databases import Place
from ..extraction.kit import memory
from .kit import LONGEST, run_of

OPTIONS = RunOptions(lease_seconds=20, attempts=2, backoff_seconds=0.01)
SAID = [
    {"role": "user", "content": "I live in Lisbon."},
    {"role": "assistant", "content": "You like fado."},
    {"role": "user", "content": "我对牛奶过敏。"},
]
HOME = memory("The user lives in Lisbon.", "I live in Lisbon")


async def learned(
    place: Place, server: ProviderServer, reply: Reply
) -> tuple[Run, list[str], dict[str, Any]]:
    """The run, the texts that are known then, and the details of the first stage."""
    server.chat.reply_always(reply)
    async with (
        OpenAIExtractor(base_url=server.base_url, api_key=server.api_key, trust="low") as extractor,
        place.open(workers=1, extractor=extractor, options=OPTIONS) as store,
    ):
        conversation = await store.record_conversation("agent", "user", SAID)
        await store.drain(LONGEST)
        run = await run_of(store, conversation)
        entries = await store.list_entries("agent", "user", include_retired=True)
        sql = "SELECT result FROM memory_run_stages WHERE run_id = ?1 AND stage = 'modification'"
        rows = await store._database.fetch(sql, (run.run_id,), list)
    result = json.loads(rows[0][0]) if rows and isinstance(rows[0][0], str) else rows and rows[0][0]
    return run, [entry.text for entry in entries], (result or {}).get("data", {})


UNUSABLE = {
    "prose": Reply("The user lives in Lisbon and seems to be happy there."),
    "half JSON": Reply('{"memories": [{"from": "m1", "quote": "I live in Lisbon", "kind": "profile", "te'),
    "an empty answer": Reply(""),
    "a refusal": Reply(refusal="I cannot help with that."),
}


@pytest.mark.parametrize("reply", UNUSABLE.values(), ids=UNUSABLE.keys())
@in_event_loop
async def test_an_unusable_answer_stores_nothing_and_is_recorded(
    place: Place, server: ProviderServer, reply: Reply
) -> None:
    run, known, _ = await learned(place, server, reply)
    assert (run.status, known, run.stages) == ("failed", [], ())
    assert 1 <= len(run.failures) <= OPTIONS.attempts, "it is not asked without end"
    assert {failure.raw_response for failure in run.failures} == {reply.text or reply.refusal or ""}


DROPPED: dict[str, tuple[list[Any], dict[str, int]]] = {
    "quotes that do not exist": (
        [memory("The user is a pilot in Lisbon.", "I fly planes"), memory("The user sails.", "I sail")],
        {"dropped_quote_not_found": 2},
    ),
    "ids that do not exist": (
        [memory("The user sings in Lisbon.", "I sing", "m99", replaces=["e7"])],
        {"dropped_quote_not_found": 1},
    ),
    "words of the assistant": (
        [memory("The user likes fado.", "You like fado")],
        {"dropped_not_said_by_the_user": 1},
    ),
    "messages word for word": (
        [memory("I live in Lisbon.", "I live in Lisbon"), memory("我对牛奶过敏。", "我对牛奶过敏", "m2")],
        {"dropped_copied": 2},
    ),
    "another language": (
        [memory("The user is allergic to milk.", "我对牛奶过敏", "m2")],
        {"dropped_other_language": 1},
    ),
    "questions": (
        [memory("Does the user live in Lisbon?", "I live in Lisbon")],
        {"dropped_question": 1},
    ),
    "code": (
        [memory("print('Lisbon')", "I live in Lisbon"), memory("x.y('Lisbon');", "Lisbon")],
        {"dropped_code": 2},
    ),
    "no texts": ([17, None, {"kind": "mind"}], {"dropped_unreadable": 3}),
}


@pytest.mark.parametrize(("claims", "counts"), DROPPED.values(), ids=DROPPED.keys())
@in_event_loop
async def test_what_was_not_said_is_dropped_and_counted(
    file_place: Place, server: ProviderServer, claims: list[Any], counts: dict[str, int]
) -> None:
    run, known, data = await learned(file_place, server, Reply.json({"memories": [*claims, HOME]}))
    assert (run.status, known) == ("done", ["The user lives in Lisbon."])
    assert {name: count for name, count in data.items() if name.startswith("dropped")} == counts


@in_event_loop
async def test_ten_thousand_candidates_are_bounded(place: Place, server: ProviderServer) -> None:
    many = [f"The user has {number} boats." for number in range(10_000)]
    reply = Reply.json({"memories": [HOME, *many]}, usage=Usage(9, 8))
    run, known, data = await learned(place, server, reply)
    assert (run.status, known) == ("done", ["The user lives in Lisbon."])
    assert (data["dropped_too_many"], data["dropped_quote_not_found"]) == (9_801, 199)
    assert sum(stage.prompt_tokens + stage.completion_tokens for stage in run.stages) == 17, "counted once"
    assert len(server.requests()) == 1
