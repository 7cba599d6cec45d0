"""The three stages with real clients: their results, their tokens, and what they drop."""

from typing import Any

import pytest

from recollect.memory.extraction import PROMPT_VERSION
from recollect.memory.pipeline.stages import Candidate, Decision, Mind, Modification, Update, Usage
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Reply, ToolCall
from recollect.testing.providers import Usage as Cost

from .kit import (
    MOVED,
    bodies_sent,
    candidate,
    each_provider,
    entry,
    excerpt,
    extractor_of,
    quoted_in,
    script_of,
)

MOVE = {
    "type": "event",
    "text": "The user moved to Lisbon on 7 May 2024.",
    "evidence": ["m1"],
    "confidence": 0.9,
    "happened_on": "2024-05-07",
    "valid_from": None,
    "valid_to": None,
    "slot": None,
}
CAT = {"type": "profile", "text": "The user has a cat named Pixel.", "evidence": ["m1"], "confidence": 1}


def answered(provider: str, value: Any, cost: Cost | None = None) -> Reply:
    """The response in the requested format."""
    if provider == "openai":
        return Reply.json(value, usage=cost)
    return Reply(tool_calls=[ToolCall("note_down", value)], usage=cost)


@each_provider
@in_event_loop
async def test_what_is_new_comes_as_candidates_with_their_evidence(
    server: ProviderServer, provider: str
) -> None:
    value = {"summary": "The user has moved.", "candidates": [MOVE, CAT]}
    script_of(server, provider).reply(answered(provider, value, Cost(300, 40)))
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.modification(MOVED)
    assert answer.value == Modification(
        "The user has moved.",
        (
            Candidate(
                "event",
                "The user moved to Lisbon on 7 May 2024.",
                ("id-2",),
                0.9,
                "2024-05-07",
                data={"date": "2024-05-07", "said_on": "2024-05-08"},
            ),
            Candidate("profile", "The user has a cat named Pixel.", ("id-2",), 1.0),
        ),
    )
    assert answer.usage == Usage(300, 40)
    assert answer.data == {"prompt_version": PROMPT_VERSION}
    assert '"The user has moved."' in answer.raw_response


@each_provider
@in_event_loop
async def test_each_candidate_is_held_against_what_is_known(server: ProviderServer, provider: str) -> None:
    decisions = [
        {"candidate": "c1", "action": "supersede", "targets": ["e2"]},
        {"candidate": "c2", "action": "none", "targets": ["e1"]},
        {"candidate": "c3", "action": "add", "targets": []},
    ]
    script_of(server, provider).reply(answered(provider, {"decisions": decisions}, Cost(200, 20)))
    candidates = [candidate("The user lives in Lisbon."), candidate("Pixel is a cat."), candidate("New.")]
    known = [entry("pixel", "The user has a cat, Pixel."), entry("home", "The user lives in Paris.")]
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.update(MOVED, candidates, known)
    assert answer.value == Update(
        (Decision(0, "supersede", ("home",)), Decision(1, "none", ("pixel",)), Decision(2, "add"))
    )
    assert answer.usage == Usage(200, 20)
    (body,) = bodies_sent(server, provider)
    assert [each["id"] for each in quoted_in(body, "candidates")] == ["c1", "c2", "c3"]
    assert [each["text"] for each in quoted_in(body, "known")] == [each.text for each in known]
    assert [each["id"] for each in quoted_in(body, "messages")] == ["m1"], "those that the candidates cite"


@each_provider
@in_event_loop
async def test_the_mind_comes_with_the_score_that_the_model_gave(
    server: ProviderServer, provider: str
) -> None:
    value = {
        "insights": "The user seems happy.",
        "confidence_score": 0.65,
        "entries": [{"text": "The user loves the small flat.", "evidence": ["m3"], "confidence": 0.8}],
    }
    script_of(server, provider).reply(answered(provider, value, Cost(100, 10)))
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.mind(MOVED, [entry("x", "The user has a cat.")])
    loves = Candidate("mind", "The user loves the small flat.", ("id-4",), 0.8)
    assert answer.value == Mind("The user seems happy.", 0.65, (loves,))
    assert answer.usage == Usage(100, 10)


@each_provider
@in_event_loop
async def test_nothing_new_is_an_answer(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply(
        answered(provider, {"summary": "", "candidates": []}),
        answered(provider, {"insights": "", "confidence_score": 0, "entries": []}),
    )
    async with extractor_of(server, provider) as extractor:
        assert (await extractor.modification(MOVED)).value == Modification("", ())
        assert (await extractor.mind(MOVED, [])).value == Mind("", 0.0, ())


@each_provider
@in_event_loop
async def test_where_there_is_nothing_to_decide_nobody_is_asked(
    server: ProviderServer, provider: str
) -> None:
    unheard = excerpt(("system", "You are kind."), ("assistant", "Hello!"))
    async with extractor_of(server, provider) as extractor:
        assert (await extractor.modification(unheard)).value == Modification("", ())
        assert (await extractor.mind(unheard, [])).value == Mind("", None, ())
        assert (await extractor.update(MOVED, [], [entry("x", "Known.")])).value == Update(())
        assert (await extractor.update(MOVED, [candidate("New.")], [])).value == Update(())
    assert server.requests() == []


@each_provider
@in_event_loop
async def test_what_nothing_speaks_for_is_dropped_and_counted(server: ProviderServer, provider: str) -> None:
    value = {
        "summary": "",
        "candidates": [
            {**CAT, "evidence": ["m99"]},
            {"type": "profile", "text": "The user plays the trombone.", "evidence": ["m2"]},
            {"type": "profile", "text": "The assistant is polite.", "evidence": ["m1"]},
            {"type": "profile", "text": " ", "evidence": ["m1"]},
            17,
        ],
    }
    script_of(server, provider).reply(answered(provider, value))
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.modification(MOVED)
    (kept,) = answer.value.candidates
    assert (kept.text, kept.evidence) == (CAT["text"], ("id-2",)), "found by its words"
    assert answer.data == {
        "prompt_version": PROMPT_VERSION,
        "dropped_unreadable": 1,
        "dropped_without_evidence": 1,
        "dropped_about_assistant": 1,
    }


@each_provider
@in_event_loop
async def test_evidence_is_of_the_user_first_and_at_most_three(server: ProviderServer, provider: str) -> None:
    said = excerpt(*[(role, f"{role} {n}") for n in range(3) for role in ("assistant", "user")])
    cited = {"text": "The user counts.", "evidence": ["m1", "m2", "m2", "m3", "m4", "m5", "m6"]}
    script_of(server, provider).reply(answered(provider, {"candidates": [cited]}))
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.modification(said)
    assert answer.value.candidates[0].evidence == ("id-2", "id-4", "id-6")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"candidate": "c1", "action": "supersede", "targets": ["e9"]}, Decision(0, "add")),
        ({"candidate": "c1", "action": "none", "targets": ["e9"]}, Decision(0, "add")),
        ({"candidate": "c1", "action": "none", "targets": []}, Decision(0, "none")),
        ({"candidate": 1, "action": "UPDATE", "target": "e1"}, Decision(0, "supersede", ("x",))),
        ({"candidate": "c1", "action": "add", "targets": ["e1"]}, Decision(0, "add")),
        ({"candidate": "c1", "action": "supersede", "targets": ["m1", "c1", "e1"]}, None),
    ],
)
@in_event_loop
async def test_a_decision_names_only_what_there_is(
    server: ProviderServer, given: dict[str, Any], expected: Decision | None
) -> None:
    server.chat.reply(Reply.json({"decisions": [given, {"candidate": "c7", "action": "add"}]}))
    async with extractor_of(server, "openai") as extractor:
        answer = await extractor.update(MOVED, [candidate("New.")], [entry("x", "Known.")])
    assert answer.value.decisions == (expected or Decision(0, "supersede", ("x",)),)


@in_event_loop
async def test_arguments_that_are_no_json_are_read_as_the_model_wrote_them(server: ProviderServer) -> None:
    written = '{"summary": "", "candidates": ["The user has a cat named Pixel.",]}'
    server.messages.reply(ToolCall("note_down", written))
    async with extractor_of(server, "anthropic") as extractor:
        answer = await extractor.modification(MOVED)
    assert [each.text for each in answer.value.candidates] == ["The user has a cat named Pixel."]


@in_event_loop
async def test_claude_may_answer_in_words_around_json(server: ProviderServer) -> None:
    server.messages.reply('Here it is:\n```json\n{"candidates": ["The user has a cat."]}\n```\nEnjoy!')
    async with extractor_of(server, "anthropic") as extractor:
        answer = await extractor.modification(MOVED)
    assert [each.text for each in answer.value.candidates] == ["The user has a cat."]
