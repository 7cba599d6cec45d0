"""A summary never exceeds its limit: the model shortens it once, then it is cut and marked."""

import logging

import pytest

from recollect import SummaryFailedError
from recollect.items import ModelUsage, estimate_text_tokens
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Refuse, Reply, TooLong, Usage

from .kit import asked, each_provider, hasty_summarizer_of, script_of, sent_to, summarizer_of, turns

LONG = "One thing was said. " * 40
CHINESE = "我们讨论了预算。" * 40


@each_provider
@in_event_loop
async def test_a_summary_that_is_too_long_is_shortened_by_the_model_once(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply(Reply(LONG, usage=Usage(100, 50)), Reply("Short.", usage=Usage(60, 2)))
    async with summarizer_of(server, provider) as summarize:
        summary = await summarize(asked(turns(1), max_tokens=50))
    assert (summary.text, summary.usage) == ("Short.", ModelUsage(2, 160, 52))
    shortening = sent_to(server, provider)[1]
    assert "too long" in shortening.instructions
    assert LONG.strip() in shortening.text
    assert "at most 30 words" in shortening.text


@each_provider
@pytest.mark.parametrize("long", [LONG, CHINESE, "word " * 500, "字" * 500, "x" * 2000], ids=lambda t: t[:6])
@pytest.mark.parametrize("limit", [1, 2, 5, 20, 50])
@in_event_loop
async def test_a_model_that_will_not_be_brief_is_cut(
    server: ProviderServer, provider: str, long: str, limit: int
) -> None:
    script_of(server, provider).reply_always(long)
    async with summarizer_of(server, provider) as summarize:
        summary = await summarize(asked(turns(1), max_tokens=limit))
    assert 0 < estimate_text_tokens(summary.text) <= limit
    assert summary.text.endswith((" [cut to fit]", "…"))
    assert len(sent_to(server, provider)) == 2
    if limit == 50 and long in (LONG, CHINESE):
        assert summary.text.removesuffix(" [cut to fit]").endswith((".", "。")), "at the end of a sentence"


@each_provider
@in_event_loop
async def test_a_summary_of_exactly_the_limit_is_left_alone(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply_always("字" * 50)
    async with summarizer_of(server, provider) as summarize:
        assert (await summarize(asked(turns(1), max_tokens=50))).text == "字" * 50
        assert len(sent_to(server, provider)) == 1
        assert (await summarize(asked(turns(1), max_tokens=49))).text != "字" * 50


@each_provider
@in_event_loop
async def test_an_answer_that_was_stopped_for_its_length_is_not_taken_as_it_is(
    server: ProviderServer, provider: str
) -> None:
    stopped = Reply("Ada lives in Berlin. She has a", stop="length")
    script_of(server, provider).reply(stopped, "Ada lives in Berlin.", stopped, stopped)
    async with summarizer_of(server, provider) as summarize:
        assert (await summarize(asked(turns(1)))).text == "Ada lives in Berlin."
        assert (await summarize(asked(turns(1)))).text == "Ada lives in Berlin. [cut to fit]"


@each_provider
@pytest.mark.parametrize("fault", [Refuse(500), Refuse(429), TooLong()], ids=["broken", "limited", "long"])
@in_event_loop
async def test_a_summary_that_cannot_be_shortened_is_cut(
    server: ProviderServer, provider: str, fault: Refuse, caplog: pytest.LogCaptureFixture
) -> None:
    script_of(server, provider).reply(LONG)
    server.fail_next("POST **", fault, after=1)
    async with hasty_summarizer_of(server, provider) as summarize:
        with caplog.at_level(logging.WARNING, "recollect"):
            summary = await summarize(asked(turns(1), max_tokens=50))
    assert summary.text.endswith("said. [cut to fit]")
    assert estimate_text_tokens(summary.text) <= 50
    assert "could not be shortened" in caplog.text
    assert "One thing" not in caplog.text


@each_provider
@in_event_loop
async def test_a_summary_so_far_over_a_lower_limit_is_shortened(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply("Shorter.")
    async with summarizer_of(server, provider) as summarize:
        assert (await summarize(asked([], LONG, max_tokens=50))).text == "Shorter."
    (sent,) = sent_to(server, provider)
    assert LONG.strip() in sent.text


@each_provider
@in_event_loop
async def test_every_part_keeps_to_the_limit(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply_always(LONG)
    async with summarizer_of(server, provider, max_input_tokens=1000) as summarize:
        summary = await summarize(asked(turns(30, words=20), max_tokens=60))
    assert estimate_text_tokens(summary.text) <= 60
    for sent in sent_to(server, provider):
        assert estimate_text_tokens(sent.text) <= 1000


@each_provider
@in_event_loop
async def test_an_empty_shortening_leaves_the_cut_of_the_first(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply(Reply(LONG), Reply(""))
    async with summarizer_of(server, provider) as summarize:
        assert (await summarize(asked(turns(1), max_tokens=50))).text.startswith("One thing was said.")


@each_provider
@in_event_loop
async def test_errors_say_nothing_of_what_was_said(server: ProviderServer, provider: str) -> None:
    server.fail_next("POST **", Refuse(400, "cannot take: my secret word"))
    async with hasty_summarizer_of(server, provider) as summarize:
        with pytest.raises(SummaryFailedError) as caught:
            await summarize(asked([{"role": "user", "content": "my secret word"}]))
    assert "secret" not in str(caught.value)
    assert "answered 400" in str(caught.value)
    assert caught.value.__cause__ is not None
