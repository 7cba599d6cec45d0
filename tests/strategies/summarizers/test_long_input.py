"""Long input is summarized in parts. Every word reaches the model."""

import asyncio
import re
from typing import Any

import pytest

from recollect import SummaryFailedError
from recollect.items import Item, ModelUsage, estimate_text_tokens
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, RecordedRequest, Refuse, Reply, Usage

from .kit import Sent, asked, each_provider, hasty_summarizer_of, script_of, sent_to, summarizer_of, turns


def transcript_in(sent: Sent) -> str:
    """The text between the markers, without indentation."""
    found = re.search(r"<(transcript-\w+)>\n(.*)\n</\1>", sent.text, re.DOTALL)
    assert found
    return found[2]


def spoken(sent: list[Sent]) -> str:
    """The text of all requests, without speakers and indentation."""
    lines = [line for each in sent for line in transcript_in(each).split("\n")]
    return "".join(line[2:] for line in lines if line.startswith("  "))


def numbered() -> Any:
    """Each summary has its number."""
    count = iter(range(1, 10_000))
    return lambda _request: Reply(f"Summary number {next(count)}.", usage=Usage(100, 5))


@each_provider
@in_event_loop
async def test_many_turns_go_in_parts_each_with_the_summary_so_far(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always(numbered())
    async with summarizer_of(server, provider, max_input_tokens=2000) as summarize:
        summary = await summarize(asked(turns(100, words=30), "Where it began."))
    sent = sent_to(server, provider)
    assert len(sent) > 5
    assert summary.text == f"Summary number {len(sent)}."
    assert summary.usage == ModelUsage(len(sent), 100 * len(sent), 5 * len(sent))
    for number, each in enumerate(sent):
        assert estimate_text_tokens(each.instructions + each.text) <= 2000
        expected = f"Summary number {number}." if number else "Where it began."
        assert re.search(rf"<(summary-\w+)>\n{expected}\n</\1>", each.text)
        assert transcript_in(each).startswith("[user]"), "a part starts with a turn"
    everything = spoken(sent)
    found = re.findall(r"(question|answer)(\d+)x", everything)
    assert found == [(kind, str(n)) for n in range(100) for kind in ("question", "answer")]


@each_provider
@pytest.mark.parametrize("unit", ["word ", "世界", "😀", "line\n", "x", "a\u2028b "])
@in_event_loop
async def test_a_single_huge_item_goes_in_pieces(server: ProviderServer, provider: str, unit: str) -> None:
    script_of(server, provider).reply_always("A summary.")
    text = "".join(f"{number}{unit}" for number in range(4000))
    items: list[Item] = [{"role": "user", "content": text}, {"role": "assistant", "content": "the end"}]
    async with summarizer_of(server, provider, max_input_tokens=2000) as summarize:
        await summarize(asked(items, max_tokens=200))
    sent = sent_to(server, provider)
    assert len(sent) > 2
    assert max(estimate_text_tokens(each.instructions + each.text) for each in sent) <= 2000
    lost = str.maketrans("", "", " \n\u2028")  # indentation is added at line ends
    assert spoken(sent).translate(lost) == (text + "the end").translate(lost)
    assert "[user, continued]" in sent[1].text


@each_provider
@in_event_loop
async def test_a_huge_tool_output_goes_in_pieces_under_the_name_of_its_tool(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always("A summary.")
    items: list[Item] = [
        {"role": "user", "content": "Read it all"},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "9" * 20_000},
    ]
    async with summarizer_of(server, provider, max_input_tokens=2000) as summarize:
        await summarize(asked(items))
    sent = sent_to(server, provider)
    assert spoken(sent).count("9") == 20_000
    assert all("[tool read, continued]" in each.text for each in sent[2:])


@each_provider
@in_event_loop
async def test_what_the_model_does_not_take_at_once_it_gets_in_smaller_parts(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always("A summary.")
    script_of(server, provider).context_window = 1500
    async with hasty_summarizer_of(server, provider, max_input_tokens=8000) as summarize:
        summary = await summarize(asked(turns(60, words=30), max_tokens=100))
    assert summary.text == "A summary."
    accepted = [each for each in sent_to(server, provider) if is_within(each, 1500)]
    assert len(accepted) < len(sent_to(server, provider)), "some were refused"
    found = set(re.findall(r"(?:question|answer)\d+x", spoken(accepted)))
    assert found == {f"{kind}{n}x" for n in range(60) for kind in ("question", "answer")}


def is_within(sent: Sent, tokens: int) -> bool:
    return estimate_text_tokens(transcript_in(sent)) + 420 < tokens


@each_provider
@in_event_loop
async def test_a_model_that_takes_nothing_at_all_is_not_asked_for_ever(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).context_window = 5
    async with hasty_summarizer_of(server, provider) as summarize:
        with pytest.raises(SummaryFailedError, match="even a small part"):
            await summarize(asked(turns(50, words=50)))
    assert len(server.requests()) < 30


@each_provider
@in_event_loop
async def test_a_summary_so_far_that_is_far_too_long_goes_in_parts_too(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always("A summary.")
    previous = " ".join(f"fact{number}." for number in range(2000))
    async with summarizer_of(server, provider, max_input_tokens=2000) as summarize:
        await summarize(asked(turns(1), previous, max_tokens=100))
    sent = sent_to(server, provider)
    assert max(estimate_text_tokens(each.instructions + each.text) for each in sent) <= 2000
    assert "[summary of what came before]" in sent[0].text
    everything = spoken(sent)
    assert all(f"fact{number}." in everything for number in range(2000))
    assert "question0x" in everything


@each_provider
@in_event_loop
async def test_a_fault_in_a_later_part_is_an_error_and_not_half_a_summary(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always("A summary.")
    server.fail_next("POST **", Refuse(500), after=2)
    async with hasty_summarizer_of(server, provider, max_input_tokens=2000) as summarize:
        with pytest.raises(SummaryFailedError):
            await summarize(asked(turns(100, words=30)))
    assert len(server.requests()) == 3


@each_provider
@in_event_loop
async def test_summaries_of_several_sessions_are_made_at_once(server: ProviderServer, provider: str) -> None:
    def answer(request: RecordedRequest) -> str:
        found = re.search(r"question(\d+)x", str(request.body))
        assert found
        return f"About question {found[1]}."

    script_of(server, provider).reply_always(answer)
    async with summarizer_of(server, provider) as summarize:
        one_turn = [turns(20)[2 * number : 2 * number + 2] for number in range(20)]
        summaries = await asyncio.gather(*(summarize(asked(items)) for items in one_turn))
    assert [summary.text for summary in summaries] == [f"About question {n}." for n in range(20)]
