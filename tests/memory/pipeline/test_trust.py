"""A model that is trusted: what it names is applied as it says, and inventions are still dropped."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.lifetime import state_of
from recollect.memory.store import MemoryStore
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, RecordedRequest, Reply

from ..databases import Place
from ..extraction.kit import memory, quoted_in
from .kit import LONGEST, run_of

DAY = "2026-03-09T10:00:00Z"


def answering(*memories: dict[str, Any]) -> Any:
    """A model that answers so. A text in `replaces` is that of a known entry, whose id it names."""

    def answer(request: RecordedRequest) -> Reply:
        if "<notes>" in str(request.body):
            return Reply.json({"memories": []})
        ids = {line["text"].split(" (since ")[0]: line["id"] for line in quoted_in(request.body, "known")}
        given = [
            {
                **each,
                **{
                    name: [ids.get(text, text) for text in each.get(name, ())]
                    for name in ("replaces", "doubts")
                },
            }
            for each in memories
        ]
        return Reply.json({"memories": given})

    return answer


async def learn(
    store: MemoryStore, server: ProviderServer, said: list[str], *memories: dict[str, Any]
) -> Any:
    server.chat.reply_always(answering(*memories))
    messages = [{"role": "user", "content": each} for each in said]
    conversation = await store.record_conversation("agent", "user", messages, created_at=DAY)
    await store.drain(LONGEST)
    return await run_of(store, conversation)


async def texts_of(store: MemoryStore) -> list[str]:
    return [entry.text for entry in await store.list_entries("agent", "user")]


def opened(place: Place, server: ProviderServer, **options: Any) -> MemoryStore:
    runs = {"options": options.pop("options")} if "options" in options else {}
    extractor = OpenAIExtractor(base_url=server.base_url, api_key=server.api_key, **options)
    return place.open(workers=1, extractor=extractor, **runs)


@in_event_loop
async def test_a_named_change_is_applied_whatever_its_words(place: Place, server: ProviderServer) -> None:
    async with opened(place, server) as store:
        takes = memory("The user takes metoprolol for blood pressure.", "I take metoprolol")
        job = memory("用户在北京做产品经理。", "我在北京做产品经理", source="m2")
        await learn(store, server, ["I take metoprolol", "我在北京做产品经理"], takes, job)
        off = memory(
            "The doctor ended it in July.", "doc took me off it", replaces=[takes["text"]], date="2026-07"
        )
        quit_ = memory(
            "用户4月底辞职。",
            "上周我辞职了",
            source="m2",
            kind="event",
            replaces=[job["text"]],
            date="2026-04-27",
        )
        await learn(store, server, ["doc took me off it", "上周我辞职了"], off, quit_)
        assert await texts_of(store) == [off["text"], quit_["text"]]
        found = await store.list_entries("agent", "user")
        assert [entry.valid_from for entry in found] == ["2026-07", "2026-04-27"]


@in_event_loop
async def test_an_end_and_a_confirmation_are_applied(place: Place, server: ProviderServer) -> None:
    async with opened(place, server) as store:
        plan = memory(
            "The user flies to Japan on 3 October.", "I fly to Japan", kind="event", date="2026-10-03"
        )
        home = memory("The user lives in Oslo.", "I live in Oslo")
        await learn(store, server, ["I fly to Japan on 3 October. I live in Oslo."], plan, home)
        end = memory("The flight to Japan is cancelled.", "Japan is off", op="end", replaces=[plan["text"]])
        same = memory("The user lives in Oslo.", "still in Oslo", op="confirm", replaces=[home["text"]])
        await learn(store, server, ["Japan is off. I'm still in Oslo."], end, same)
        oslo, ended = await store.list_entries("agent", "user")
        assert (oslo.text, len({each.message_id for each in oslo.evidence})) == (home["text"], 2)
        assert (ended.text, ended.content_type, ended.data["ended"]) == (end["text"], "event", True)
        history = await store.get_history(ended.content_id)
        assert [entry.text for entry in history] == [plan["text"], end["text"]]


@pytest.mark.parametrize(
    ("said", "sound"),
    [
        ("花了一万二做手术", memory("手术花了12000元。", "花了一万二")),
        ("I paid eight thousand four hundred", memory("The user paid 8,400.", "eight thousand four hundred")),
        ("did I tell you I'm 182 tall?", memory("The user is 182 cm tall.", "I'm 182 tall")),
        (
            "I do worry too much haha",
            memory("Control matters to the person.", "I do worry too much", kind="mind"),
        ),
    ],
    ids=["a number in Chinese words", "a number in words", "a question that tells", "an inference"],
)
@in_event_loop
async def test_what_is_sound_is_not_lost(
    file_place: Place, server: ProviderServer, said: str, sound: dict[str, Any]
) -> None:
    async with opened(file_place, server) as store:
        await learn(store, server, [said], sound)
        assert await texts_of(store) == [sound["text"]]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (memory("The user lives in Rome.", "I live in Rome"), "quote_not_found"),
        (memory("The user has 7500 boats.", "I live in Oslo"), "name_not_said"),
        (
            {**memory("The user lives in Oslo.", ""), "quotes": ["I live in Oslo", "I like it"]},
            "quote_not_found",
        ),
        (memory("The assistant is helpful.", "I live in Oslo"), "about_assistant"),
        (memory("The user likes fado.", "You like fado"), "quote_not_found"),
    ],
)
@in_event_loop
async def test_an_invention_is_dropped_all_the_same(
    file_place: Place, server: ProviderServer, wrong: dict[str, Any], reason: str
) -> None:
    async with opened(file_place, server) as store:
        run = await learn(store, server, ["I live in Oslo"], wrong)
        assert await texts_of(store) == []
        assert run.to_dict()["stages"][0]["dropped"] == {reason.replace("_", " "): 1}


@in_event_loop
async def test_two_quotes_are_two_pieces_of_evidence(file_place: Place, server: ProviderServer) -> None:
    swims = {
        **memory("The user swims on Tuesdays.", ""),
        "from": "m1, m2",
        "quotes": ["I swim", "on Tuesdays"],
    }
    async with opened(file_place, server) as store:
        await learn(store, server, ["I swim before work", "on Tuesdays"], swims)
        (entry,) = await store.list_entries("agent", "user")
        assert len({each.message_id for each in entry.evidence}) == 2


@in_event_loop
async def test_an_entry_does_not_expire_on_the_day_it_was_said(
    file_place: Place, server: ProviderServer
) -> None:
    async with opened(file_place, server) as store:
        await learn(
            store,
            server,
            ["I live in Oslo"],
            memory("The user lives in Oslo.", "I live in Oslo", until="2026-03-09"),
        )
        (entry,) = await store.list_entries("agent", "user")
        assert state_of(entry, now()) == "current"


@in_event_loop
async def test_ids_that_do_not_exist_and_a_thousand_operations_change_nothing_else(
    file_place: Place, server: ProviderServer
) -> None:
    many = [
        memory(f"The user lives in Oslo {number}.", "I live in Oslo", op="end", replaces=["e999"])
        for number in range(1000)
    ]
    async with opened(file_place, server) as store:
        mine = await store.add_entry("agent", "user", "profile", "The user has a boat.")
        theirs = await store.add_entry("agent", "other", "profile", "The other user has a car.")
        await learn(store, server, ["I live in Oslo"], *many)
        for entry in (mine, theirs):
            kept = await store.get_entry(entry.content_id)
            assert kept is not None
            assert kept.retired_at is None
        assert len(await texts_of(store)) == 11


@in_event_loop
async def test_one_operation_ends_some_entries_and_never_all(
    file_place: Place, server: ProviderServer
) -> None:
    gone = memory(
        "The user has nothing.", "I sold it all", op="end", replaces=[f"e{n}" for n in range(1, 99)]
    )
    async with opened(file_place, server) as store:
        for number in range(30):
            await store.add_entry("agent", "user", "profile", f"The user has boat number {number}.")
        await learn(store, server, ["I sold it all"], gone)
        assert len(await texts_of(store)) == 30 - 20 + 1


@in_event_loop
async def test_a_kind_of_the_application_is_a_profile_entry_that_says_its_kind(
    file_place: Place, server: ProviderServer
) -> None:
    async with opened(file_place, server, kinds={"room": "a room they like"}, exclude=["prices"]) as store:
        await learn(
            store,
            server,
            ["I like room 12"],
            memory("The user likes room 12.", "I like room 12", kind="room"),
        )
        (entry,) = await store.list_entries("agent", "user")
        assert (entry.content_type, entry.data["kind"]) == ("profile", "room")
        body = server.requests("POST /v1/chat/completions")[0].body
        assert "Never note: prices." in json.dumps(body)


class Topics:
    """An embedder that knows two words for the same thing."""

    name, dimensions = "topics", 3

    async def embed(self, texts: Sequence[str], /) -> Any:
        topics = ("car", "Skoda"), ("tea", "Assam"), ("",)
        return [[float(any(word in text for word in words)) for words in topics] for text in texts]


@in_event_loop
async def test_if_not_all_entries_fit_the_nearest_by_meaning_are_shown(
    file_place: Place, server: ProviderServer
) -> None:
    extractor = OpenAIExtractor(base_url=server.base_url, api_key=server.api_key)
    async with file_place.open(workers=1, extractor=extractor, embedder=Topics()) as store:
        skoda = "The user drives a blue Skoda from 2019, bought in Leeds."
        await store.add_entry("agent", "user", "profile", skoda)
        for number in range(310):
            text = f"The user has painting {number} of the old harbour in the long hall of the house."
            await store.add_entry("agent", "user", "profile", text)
        await store.drain(LONGEST)
        shown: list[dict[str, Any]] = []

        def answer(request: RecordedRequest) -> Reply:
            shown.extend(quoted_in(request.body, "known"))
            return Reply.json({"memories": []})

        server.chat.reply_always(answer)
        await learn_from(store, "we need another car")
        assert (shown[0]["id"], shown[0]["text"]) == ("e1", skoda)
        assert 20 < len(shown) < 120


async def learn_from(store: MemoryStore, text: str) -> None:
    await store.record_conversation("agent", "user", [{"role": "user", "content": text}])
    await store.drain(LONGEST)


def test_trust_is_high_or_low() -> None:
    with pytest.raises(ValueError, match="trust must be one of high, low"):
        OpenAIExtractor(trust="some")  # type: ignore[arg-type]
