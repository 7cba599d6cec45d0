"""Finding words that are to be forgotten, wherever they are quoted."""

import json
from collections.abc import Sequence
from functools import partial

import pytest

from recollect.memory.database import removal
from recollect.memory.entry import Entry
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.memory.pipeline.stages import Answer, Candidate, Excerpt, Mind, Update
from recollect.memory.rights.quotes import Quotes, QuoteScan, plain, scan_results
from recollect.sql.columns import text_to_column
from recollect.sql.scripts import Script
from recollect.testing.contract import in_event_loop

from .kit import AGENT, Rules, Somewhere, Store, said, tell
from .people import marked, rows_of

WORDS = [
    "lives in Ghent",
    'is called "the old goat" at work',
    "keeps a file at C:\\new\\users\\u00e9 on disk",
    "mag Käse aus Würzburg",
    "用户喜欢喝绿茶",
    "plays 🎻 in the evening",
    "half \ud83d a sign",
    "a nul \0 within",
    "two\nlines and\ta tab",
]


def escaped(text: str, times: int) -> str:
    for _ in range(times):
        text = json.dumps({"said": f"known: {text}!"})
    return text


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.parametrize("times", range(4))
def test_a_text_is_found_however_often_it_was_escaped(text: str, times: int) -> None:
    quotes = Quotes([text, "something else altogether"])
    assert quotes.occur_in(text_to_column(escaped(text, times)))
    assert quotes.occur_in("nothing here", text_to_column(escaped(text[0].upper() + text[1:], times)))
    assert not quotes.occur_in(text_to_column(escaped(text[:-1], times)))


def test_texts_are_found_at_every_place_and_of_every_length() -> None:
    alphabet = "".join(map(chr, range(0x4E00, 0x4E00 + 90)))
    for length in (*range(3, 20), 31, 32, 33, 63, 64, 80):
        quotes = Quotes([alphabet[:length], alphabet[::-1]])
        for before in range(9):
            assert quotes.occur_in("." * before + alphabet[:length])
            assert quotes.occur_in("." * before + alphabet[:length] + "..")
            assert not quotes.occur_in("." * before + alphabet[: length - 1])
            assert not quotes.occur_in("." * before + alphabet[1:length])


def test_texts_that_end_alike_are_told_apart() -> None:
    ending = " went to the market to buy green tea and a lamp"
    quotes = Quotes([f"{name}{ending}" for name in ("Anna", "Bruno", "Clara")])
    assert quotes.occur_in(f"so Bruno{ending}.")
    assert not quotes.occur_in(f"so Doris{ending}.")


def test_what_is_too_short_to_tell_anything_is_not_looked_for() -> None:
    assert not Quotes(["tea", "  a  ", ""])
    assert not Quotes(["tea"]).occur_in("likes tea")


def test_spaces_and_case_make_no_difference() -> None:
    assert plain("Lives  in\\n\tGhent") == plain("lives in ghent") == "lives in ghent"


class Telling(Rules):
    """Whose answers are JSON, and tell all that is known."""

    async def update(
        self, excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry]
    ) -> Answer[Update]:
        answer = await super().update(excerpt, candidates, known)
        told = [*(each.text for each in known), *(each.text for each in candidates)]
        return Answer(answer.value, raw_response=json.dumps({"known": told}))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        answer = await super().mind(excerpt, known)
        told = json.dumps({"minds": [entry.text for entry in known]})
        return Answer(Mind("calm", 0.5, answer.value.candidates), raw_response=told)


async def tell_all(store: Store, conversation_id: str, text: str) -> None:
    await store.record_conversation(AGENT, "ann", said(text), conversation_id=conversation_id)
    runner = Runner(store._database, Telling(), RunOptions(attempts=1))
    while (task := await runner.claim("telling")) is not None:
        await runner.execute(task)


@pytest.mark.parametrize("text", ['is called "the odd goat" there', "kennt den odd goat aus Käsdorf"])
@in_event_loop
async def test_answers_of_others_that_quote_what_is_gone_go_though_they_are_escaped_twice(
    shared: Somewhere, text: str
) -> None:
    async with shared.open() as store:
        await tell_all(store, "c1", f"name: {text}")
        await tell_all(store, "c2", f"name: {text} (again)")  # whose answers tell what is known
        before = marked(rows_of(shared.url), "odd goat")
        assert {"conversations", "memory_run_stages"} <= before.keys()
        await store.erase_conversation("c1")
        await store.erase_conversation("c2")
        assert marked(rows_of(shared.url), "odd goat") == {}
        await tell_all(store, "c3", f"name: {text}")
        await tell_all(store, "c4", "name: is called otherwise now")
        await store.erase_conversation("c3")
        assert marked(rows_of(shared.url), "odd goat") == {}
        assert marked(rows_of(shared.url), "otherwise") != {}


def counted(script: Script[None], read: list[str]) -> Script[None]:
    """A script, with the pages of answers noted that are read within it."""
    rows = None
    while True:
        try:
            statement = next(script) if rows is None else script.send(rows)
        except StopIteration:
            return
        if "raw_response" in statement.sql and statement.sql.startswith("SELECT"):
            read.extend(json.loads(statement.parameters[0]))
        rows = yield statement


async def forget(store: Store, memory_id: str, texts: Sequence[str], looked: QuoteScan) -> list[str]:
    """Forget quotes, and tell the runs that were looked through in the transaction."""
    read: list[str] = []
    queries = store._database.removal

    def script() -> Script[None]:
        read.clear()
        return counted(removal.delete_quoting_results(queries, memory_id, texts, looked), read)

    await store._database.write(script)
    return read


@in_event_loop
async def test_a_transaction_looks_through_what_was_kept_since_and_nothing_else(shared: Somewhere) -> None:
    async with shared.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        for number in range(3):
            await tell(store, f"more {number}", f"pet: has tortoise number {number}")
        memory = await store.get_memory(AGENT, "ann")
        assert memory is not None
        texts = ["lives in Ghent"]
        looked = await scan_results(store._database, memory.memory_id, texts)
        assert {kept.kind for kept in looked.quoting} == {"stage", "result"}
        await tell(store, "late", "home: lives in Ghent")
        (late,) = await store.list_runs_of("late")
        assert set(await forget(store, memory.memory_id, texts, looked)) == {late.run_id}
        left = marked(rows_of(shared.url), "lives in Ghent")
        assert left.keys() == {"memory_contents", "memory_evidence", "conversation_messages"}
        assert len((await store.list_runs_of("more 0"))[0].stages) == 3


@in_event_loop
async def test_texts_that_were_not_looked_for_are_looked_for_in_the_transaction(shared: Somewhere) -> None:
    async with shared.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "garbage from Ghent")
        assert {"memory_run_failures", "memory_run_stages"} <= marked(rows_of(shared.url), "Ghent").keys()
        memory = await store.get_memory(AGENT, "ann")
        assert memory is not None
        looked = await scan_results(store._database, memory.memory_id, ["keeps a tortoise"])
        assert looked.quoting == frozenset()
        await forget(store, memory.memory_id, ["lives in Ghent", "garbage from Ghent"], looked)
        left = marked(rows_of(shared.url), "Ghent").keys()
        assert left == {"memory_contents", "memory_evidence", "conversation_messages"}


@in_event_loop
async def test_whoever_removes_entries_with_their_precursors_is_told_all_their_texts(
    somewhere: Somewhere,
) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent \0")
        await tell(store, "c2", "home: moved to a farm near Oslo")
        (entry,) = await store.list_entries(AGENT, "ann")
        remove = partial(
            removal.remove_with_precursors, store._database.removal, entry.memory_id, [entry.content_id]
        )
        assert sorted(await store._database.write(remove)) == [
            "lives in Ghent \0",
            "moved to a farm near Oslo",
        ]
        assert await store.list_entries(AGENT, "ann", include_retired=True) == []
