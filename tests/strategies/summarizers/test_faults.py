"""For any fault of the provider, a summarizer gives a summary or one clear error, and still works."""

import asyncio
import threading
from typing import Any

import anthropic
import openai
import pytest

from recollect import SummaryFailedError
from recollect.errors import RecollectError
from recollect.strategies.summarizers import AnthropicSummarizer, OpenAISummarizer
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import (
    CloseAfter,
    CloseBefore,
    Delay,
    Fault,
    Filtered,
    Garble,
    Hold,
    Overloaded,
    ProviderServer,
    Refuse,
    Stall,
    TooLong,
    Truncate,
    WrongKey,
)

from .kit import PATHS, asked, each_provider, hasty_summarizer_of, script_of, summarizer_of, turns

FAULTS: dict[str, Fault] = {
    "limited": Refuse(429, retry_after=3),
    "broken": Refuse(500),
    "unavailable": Refuse(503),
    "broken when done": Refuse(500, done=True),
    "overloaded": Overloaded(),
    "wrong key": WrongKey(),
    "not found": Refuse(404),
    "too long": TooLong(),
    "filtered": Filtered(),
    "closed before": CloseBefore(),
    "closed after": CloseAfter(),
    "truncated": Truncate(40),
    "not json": Garble(b"{no"),
    "a page": Garble(b"<html>Bad gateway</html>", "text/html"),
    "another object": Garble(b'{"object": "list", "data": []}'),
    "an empty object": Garble(b"{}"),
    "a list": Garble(b"[]"),
    "a number": Garble(b"5"),
    "null": Garble(b"null"),
    "nothing": Garble(b""),
    "odd parts": Garble(b'{"choices": [{"message": 5}], "content": [{"type": "text"}], "usage": {}}'),
    "odd text": Garble(
        b'{"choices": [{"message": {"role": "assistant", "content": 5}}],'
        b' "content": [{"type": "text", "text": 5}], "usage": {"input_tokens": 1, "output_tokens": 1}}'
    ),
}


@each_provider
@pytest.mark.parametrize("name", FAULTS)
@in_event_loop
async def test_a_fault_is_one_clear_error_and_the_next_call_succeeds(
    server: ProviderServer, provider: str, name: str
) -> None:
    script_of(server, provider).reply_always("A summary.")
    server.fail_next(PATHS[provider], FAULTS[name], times=10 if name == "too long" else 1)
    async with hasty_summarizer_of(server, provider) as summarize:
        with pytest.raises(SummaryFailedError) as caught:
            await summarize(asked([{"role": "user", "content": "short"}]))
        assert caught.value.__cause__ is not None
        assert isinstance(caught.value, RecollectError)
        server.reset()
        script_of(server, provider).reply_always("A summary.")
        assert (await summarize(asked(turns(1)))).text == "A summary."


@each_provider
@pytest.mark.parametrize(
    "fault",
    [Refuse(429, retry_after=0.01), CloseBefore(), CloseAfter(), Truncate(40)],
    ids=["limited", "before", "after", "truncated"],
)
@in_event_loop
async def test_what_passes_by_is_tried_again(server: ProviderServer, provider: str, fault: Fault) -> None:
    script_of(server, provider).reply_always("A summary.")
    server.fail_next(PATHS[provider], fault)
    async with summarizer_of(server, provider) as summarize:
        assert (await summarize(asked(turns(1)))).text == "A summary."
    assert len(server.requests()) == 2


@each_provider
@pytest.mark.parametrize("kind", [Hold, Stall])
@in_event_loop
async def test_a_model_that_hangs_is_given_up(server: ProviderServer, provider: str, kind: Any) -> None:
    never = threading.Event()
    script_of(server, provider).reply_always("A summary.")
    server.fail_next(PATHS[provider], kind(never), times=5)
    async with summarizer_of(server, provider, timeout=4) as summarize:
        with pytest.raises(SummaryFailedError, match=r"did not answer within 4 s|APITimeoutError"):
            await summarize(asked(turns(1)))
        never.set()
        server.reset()
        script_of(server, provider).reply_always("A summary.")
        assert (await summarize(asked(turns(1)))).text == "A summary."


@each_provider
@in_event_loop
async def test_the_timeout_is_for_a_request_with_its_retries(server: ProviderServer, provider: str) -> None:
    """The client alone would retry after each of its own timeouts, and wait in between."""
    script_of(server, provider).reply_always("A summary.")
    server.fail_next(PATHS[provider], Refuse(429, retry_after=60), times=5)
    async with summarizer_of(server, provider, timeout=1) as summarize:
        with pytest.raises(SummaryFailedError, match="did not answer within 1 s"):
            await summarize(asked(turns(1)))
    assert len(server.requests()) == 1


@each_provider
@in_event_loop
async def test_a_slow_answer_within_the_timeout_is_taken(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply("A summary.")
    server.fail_next(PATHS[provider], Delay(0.1))
    async with summarizer_of(server, provider, timeout=20) as summarize:
        assert (await summarize(asked(turns(1)))).text == "A summary."


@each_provider
@in_event_loop
async def test_a_cancelled_call_ends_at_once_and_leaves_nothing_behind(
    server: ProviderServer, provider: str
) -> None:
    let_go = threading.Event()
    script_of(server, provider).reply_always("A summary.")
    server.fail_next(PATHS[provider], Hold(let_go))
    async with summarizer_of(server, provider) as summarize:
        asking = asyncio.create_task(summarize(asked(turns(1))))
        while not server.requests():  # noqa: ASYNC110 - the server is of another thread
            await asyncio.sleep(0.002)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert asyncio.all_tasks() == {asyncio.current_task()}
        let_go.set()
        assert (await summarize(asked(turns(1)))).text == "A summary."


@each_provider
@in_event_loop
async def test_nobody_listening_is_one_clear_error(provider: str) -> None:
    server = ProviderServer().start()
    async with hasty_summarizer_of(server, provider) as summarize:
        server.stop()
        with pytest.raises(SummaryFailedError, match="APIConnectionError"):
            await summarize(asked(turns(1)))


@in_event_loop
async def test_a_missing_key_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    for summarize in (OpenAISummarizer(), AnthropicSummarizer("claude-test")):
        with pytest.raises(SummaryFailedError) as caught:
            await summarize(asked(turns(1)))
        assert isinstance(caught.value.__cause__, openai.OpenAIError | anthropic.AnthropicError | TypeError)
        await summarize.aclose()
