"""One request answers for all stages, with real clients: candidates, their tokens, and what they replace."""

from typing import Any

import pytest

from recollect.memory.extraction import PROMPT_VERSION
from recollect.memory.extraction.candidates import to_candidates
from recollect.memory.extraction.responses import Draft
from recollect.memory.pipeline.stages import Candidate, Decision, Mind, Modification, Update, Usage
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Reply, ToolCall
from recollect.testing.providers import Usage as Cost

from .kit import (
    MOVED,
    NOTHING,
    NOTHING_NEW,
    bodies_sent,
    candidate,
    each_provider,
    entry,
    excerpt,
    extractor_of,
    memory,
    messages,
    quoted_in,
    script_of,
)

TRIP = memory("The user saw a concert on 7 May 2024.", "a concert yesterday", kind="event", date="2024-05-07")
CAT = memory("The user has a cat named Pixel.", "my cat Pixel")
LOVES = memory("The user loves the small flat.", "I love it", "m2", "mind")
HEARD = excerpt(
    ("user", "I heard a concert yesterday, with my cat Pixel."),
    ("assistant", "Lovely!"),
    ("user", "The flat is small but I love it."),
)


def answered(provider: str, value: Any, cost: Cost | None = None) -> Reply:
    """The response in the requested format."""
    if provider != "anthropic":
        return Reply.json(value, usage=cost)
    return Reply(tool_calls=[ToolCall("note_down", value)], usage=cost)


@each_provider
@in_event_loop
async def test_one_answer_has_what_is_new_and_the_mind(server: ProviderServer, provider: str) -> None:
    value = {"memories": [TRIP, CAT, LOVES]}
    script_of(server, provider).reply(answered(provider, value, Cost(300, 40)))
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.modification(HEARD)
    event = Candidate(
        "event",
        "The user saw a concert on 7 May 2024.",
        ("id-1",),
        0.7,
        "2024-05-07",
        data={"date": "2024-05-07", "said_on": "2024-05-08"},
        quote="a concert yesterday",
        is_trusted=True,
    )
    cat = Candidate(
        "profile", "The user has a cat named Pixel.", ("id-1",), 0.7, quote="my cat Pixel", is_trusted=True
    )
    loves = Candidate(
        "mind", "The user loves the small flat.", ("id-3",), 0.7, quote="I love it", is_trusted=True
    )
    mind = Mind("- The user loves the small flat.", 0.7, (loves,))
    summary = "- The user saw a concert on 7 May 2024.\n- The user has a cat named Pixel."
    assert answer.value == Modification(summary, (event, cat), mind)
    assert answer.usage == Usage(300, 40)
    assert answer.data == {"prompt_version": PROMPT_VERSION}
    assert '"my cat Pixel"' in answer.raw_response
    assert len(server.requests()) == 1


@each_provider
@in_event_loop
async def test_an_instruction_is_learned_and_a_new_home_is_no_event(
    server: ProviderServer, provider: str
) -> None:
    said = excerpt(("user", "I moved to Lisbon yesterday. Always answer in one line."))
    home = memory("The user lives in Lisbon.", "I moved to Lisbon yesterday", kind="event", date="2024-05-07")
    short = memory("The user wants answers of one line.", "Always answer in one line", kind="instruction")
    script_of(server, provider).reply(answered(provider, {"memories": [home, short]}))
    async with extractor_of(server, provider, trust="low") as extractor:
        answer = await extractor.modification(said)
    lives, wish = answer.value.candidates
    assert (lives.content_type, lives.slot, lives.valid_from) == ("profile", "home", "2024-05-07")
    assert lives.data == {"slot": "home", "value": "lisbon"}
    assert (wish.content_type, wish.text) == ("instruction", short["text"])


@each_provider
@in_event_loop
async def test_the_day_on_which_it_was_said_is_no_date(server: ProviderServer, provider: str) -> None:
    said = excerpt(("user", "I have a garden. I planted a tree today."))
    garden = memory("The user has a garden.", "I have a garden", date="2024-05-08")
    tree = memory("The user planted a tree.", "I planted a tree today", kind="event", date="2024-05-08")
    script_of(server, provider).reply(answered(provider, {"memories": [garden, tree]}))
    async with extractor_of(server, provider, trust="low") as extractor:
        answer = await extractor.modification(said)
    assert [each.valid_from for each in answer.value.candidates] == [None, "2024-05-08"]


@pytest.mark.parametrize(
    ("said", "given", "expected"),
    [
        ("I was in Rome last week", None, "2024-04-29"),
        ("I was in Rome yesterday", "2024-05-08", "2024-05-07"),
        ("I was in Rome yesterday", "2024-05-07", "2024-05-07"),
        ("I was in Rome on 24 March", "2024-02-24", "2024-03-24"),
        ("I was in Rome on 24 March", "2021-03-24", "2021-03-24"),
        ("I was in Rome when I was young", "1990", "1990"),
        ("我昨天去了罗马", "2024-05-08", "2024-05-07"),
    ],
)
def test_a_date_is_the_one_that_the_quote_names(said: str, given: str | None, expected: str) -> None:
    draft = Draft("event", "The user was in Rome.", (0,), said, date=given)
    (found,) = to_candidates([draft], excerpt(("user", said)))
    assert found.valid_from == expected


def test_what_holds_until_a_date_expires_then_and_an_event_does_not() -> None:
    said = excerpt(("user", "We cannot upgrade until March."))
    for kind, expires_at in (("profile", "2025-03"), ("event", None)):
        draft = Draft(kind, "The user cannot upgrade.", (0,), "We cannot upgrade", until="2025-03")  # type: ignore[arg-type]
        (found,) = to_candidates([draft], said)
        assert (found.valid_to, found.expires_at) == ("2025-03", expires_at)


@each_provider
@in_event_loop
async def test_known_entries_are_sent_and_can_be_replaced(server: ProviderServer, provider: str) -> None:
    known = (
        entry("home", "The user lives in Paris.", valid_from="2020"),
        entry("cat", "The user has a cat."),
    )
    value = {"memories": [memory("The user lives in Lisbon.", "I moved to Lisbon", replaces=["e1", "e9"])]}
    script_of(server, provider).reply(answered(provider, value))
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.modification(excerpt(("user", "I moved to Lisbon."), known=known))
    assert answer.value.candidates[0].replaces == ("home",)
    (body,) = bodies_sent(server, provider)
    assert quoted_in(body, "known") == [
        {"id": "e1", "role": "profile", "text": "The user lives in Paris. (since 2020)"},
        {"id": "e2", "role": "profile", "text": "The user has a cat."},
    ]


@each_provider
@in_event_loop
async def test_candidates_are_compared_by_rule_without_a_request(
    server: ProviderServer, provider: str
) -> None:
    candidates = [candidate("The user lives in Lisbon."), candidate("The user has a cat, Pixel.")]
    known = [entry("home", "The user lives in Paris."), entry("pixel", "The user has a cat, Pixel.")]
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.update(MOVED, candidates, known)
    assert answer.value == Update((Decision(0, "supersede", ("home",)), Decision(1, "none", ("pixel",))))
    assert server.requests() == []


@each_provider
@in_event_loop
async def test_the_mind_is_inferred_from_entries(server: ProviderServer, provider: str) -> None:
    known = [entry("home", "The user lives in Lisbon."), entry("cat", "The user has a cat, Pixel.")]
    known.append(entry("guess", "The user is lonely.", "mind", data={"inferred": True}))
    calm = {
        "op": "add",
        "kind": "values",
        "text": "The user values a calm home.",
        "grounds": ["e1", "e2", "e9"],
    }
    gone = {"op": "end", "kind": "wants", "text": "The user is lonely.", "replaces": ["e3"]}
    script_of(server, provider).reply(answered(provider, {"memories": [calm, gone]}, Cost(100, 10)))
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.mind(HEARD, known)
    (found,) = answer.value.candidates
    assert (found.text, found.rests_on, found.evidence) == (calm["text"], ("home", "cat"), ())
    assert (found.content_type, found.data) == ("mind", {"about": "values"})
    assert answer.value.ended == ("guess",)
    assert answer.usage == Usage(100, 10)
    (body,) = bodies_sent(server, provider)
    assert [line["role"] for line in quoted_in(body, "notes")] == ["profile", "profile", "guess"]


@pytest.mark.parametrize(("trust", "shown"), [("high", 4), ("low", 2)])
@in_event_loop
async def test_a_small_model_is_not_shown_what_is_said_in_a_play(
    server: ProviderServer, trust: str, shown: int
) -> None:
    server.chat.reply(NOTHING_NEW)
    play = (
        "let's do a role play, I'm the queen",
        "I am pregnant again",
        "ok stop, end of role play",
        "I like tea.",
    )
    async with extractor_of(server, "openai", trust=trust) as extractor:
        await extractor.modification(excerpt(*[("user", text) for text in play]))
    (body,) = bodies_sent(server, "openai")
    lines = quoted_in(body, "messages")
    assert [line["text"] for line in lines] == list(play[-shown:])


@each_provider
@in_event_loop
async def test_nothing_new_is_an_answer(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply(answered(provider, {"memories": []}))
    async with extractor_of(server, provider) as extractor:
        assert (await extractor.modification(MOVED)).value == NOTHING


@each_provider
@in_event_loop
async def test_without_a_message_of_the_user_nobody_is_asked(server: ProviderServer, provider: str) -> None:
    unheard = excerpt(("system", "You are kind."), ("assistant", "Hello!"))
    async with extractor_of(server, provider) as extractor:
        assert (await extractor.modification(unheard)).value == NOTHING
        assert (await extractor.mind(unheard, [])).value == NOTHING.mind
    assert server.requests() == []


@each_provider
@in_event_loop
async def test_without_a_quote_the_most_similar_message_of_the_user_is_quoted(
    server: ProviderServer, provider: str
) -> None:
    value = {"memories": ["The user has a cat named Pixel.", {"text": "The user plays chess.", "from": "m9"}]}
    script_of(server, provider).reply(answered(provider, value))
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.modification(HEARD)
    cat, chess = answer.value.candidates
    assert (cat.evidence, cat.quote) == (("id-1",), HEARD.messages[0].content)
    assert (chess.evidence, chess.quote) == ((), chess.text), "no message says so: grounding drops it"


@in_event_loop
async def test_arguments_that_are_no_json_are_read_as_the_model_wrote_them(server: ProviderServer) -> None:
    written = '{"memories": ["The user has a cat named Pixel.",]}'
    server.messages.reply(ToolCall("note_down", written))
    async with extractor_of(server, "anthropic") as extractor:
        answer = await extractor.modification(MOVED)
    assert [each.text for each in answer.value.candidates] == ["The user has a cat named Pixel."]


@in_event_loop
async def test_claude_may_answer_in_words_around_json(server: ProviderServer) -> None:
    server.messages.reply('Here it is:\n```json\n{"memories": ["The user has a cat."]}\n```\nEnjoy!')
    async with extractor_of(server, "anthropic") as extractor:
        answer = await extractor.modification(MOVED)
    assert [each.text for each in answer.value.candidates] == ["The user has a cat."]


def test_an_api_that_does_not_exist_is_refused() -> None:
    from recollect import OpenAIExtractor

    with pytest.raises(ValueError, match="chat_completions, responses"):
        OpenAIExtractor(api="assistants", api_key="k")  # type: ignore[arg-type]


@in_event_loop
async def test_earlier_messages_are_sent_as_context_only(server: ProviderServer) -> None:
    server.chat.reply(NOTHING_NEW)
    async with extractor_of(server, "openai") as extractor:
        await extractor.modification(excerpt(("user", "Yes."), before=messages(("assistant", "Tea?"))))
    (body,) = bodies_sent(server, "openai")
    assert quoted_in(body, "earlier") == [{"role": "assistant", "text": "Tea?"}]
