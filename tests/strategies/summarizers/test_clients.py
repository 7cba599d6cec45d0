"""Clients are opened on first use, one for each event loop. A given client is never closed."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import anthropic
import openai
import pytest

from recollect.extras import DEFAULT_ANTHROPIC_MODEL
from recollect.strategies.summarizers import AnthropicSummarizer, OpenAISummarizer
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer

from ...providers.clients import anthropic_of, client_of
from .kit import asked, each_provider, script_of, sent_to, summarizer_of, summarizer_with, turns


def settled(server: ProviderServer) -> None:
    """Wait until the server has seen all connections close."""
    for _ in range(500):
        if not server.open_connections:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{server.open_connections} connections are still open")


@each_provider
def test_a_summarizer_works_in_one_event_loop_after_another(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply_always("A summary.")
    summarize = summarizer_of(server, provider)
    for _ in range(3):
        assert asyncio.run(summarize(asked(turns(1)))).text == "A summary."
        settled(server)  # a loop that ends closes its connections


@each_provider
def test_a_summarizer_works_in_several_threads_at_once(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply_always("A summary.")
    summarize = summarizer_of(server, provider)
    made: list[str] = []

    async def work() -> None:
        made.extend([(await summarize(asked(turns(1)))).text for _ in range(3)])

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["A summary."] * 12
    settled(server)


@each_provider
@in_event_loop
async def test_calls_in_one_loop_share_a_client_until_it_is_closed(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always("A summary.")
    summarize = summarizer_of(server, provider)
    for _ in range(3):
        await summarize(asked(turns(1)))
    assert server.open_connections == 1
    await summarize.aclose()
    await asyncio.to_thread(settled, server)
    await summarize.aclose()
    assert (await summarize(asked(turns(1)))).text == "A summary.", "it can be used again"
    await summarize.aclose()


@each_provider
@in_event_loop
async def test_nothing_is_opened_before_the_first_call(server: ProviderServer, provider: str) -> None:
    async with summarizer_of(server, provider):
        pass
    assert (server.requests(), server.open_connections) == ([], 0)


@each_provider
@in_event_loop
async def test_a_client_that_was_given_is_used_and_never_closed(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always("A summary.")
    async with (client_of if provider == "openai" else anthropic_of)(
        server, default_headers={"x-tenant": "t"}
    ) as client:
        async with summarizer_with(client, provider) as summarize:
            await summarize(asked(turns(1)))
        assert server.requests()[0].headers["x-tenant"] == "t"
        assert not client.is_closed()
        async with summarizer_with(client, provider) as summarize:
            assert (await summarize(asked(turns(1)))).text == "A summary."


@each_provider
def test_a_plain_client_that_was_given_works_in_one_event_loop_after_another(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always("A summary.")
    options = {"api_key": server.api_key, "default_headers": {"x-tenant": "t"}}
    client: Any = (
        openai.AsyncOpenAI(base_url=server.base_url, **options)
        if provider == "openai"
        else anthropic.AsyncAnthropic(base_url=server.root_url, **options)
    )
    summarize = summarizer_with(client, provider)
    for _ in range(3):
        assert asyncio.run(summarize(asked(turns(1)))).text == "A summary."
    assert not client.is_closed()
    assert {request.headers["x-tenant"] for request in server.requests()} == {"t"}
    asyncio.run(client.close())


@in_event_loop
async def test_keys_and_addresses_come_from_the_environment(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", server.api_key)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", server.api_key)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
    server.chat.reply("One.")
    server.messages.reply("Two.")
    async with OpenAISummarizer() as first, AnthropicSummarizer("claude-test") as second:
        assert (await first(asked(turns(1)))).text == "One."
        assert (await second(asked(turns(1)))).text == "Two."


@in_event_loop
async def test_the_models_are_those_that_are_documented(server: ProviderServer) -> None:
    server.chat.reply_always("One.")
    server.messages.reply_always("Two.")
    async with OpenAISummarizer(base_url=server.base_url, api_key=server.api_key) as first:
        assert (await first(asked(turns(1)))).model == "gpt-4o-mini"
    async with AnthropicSummarizer(base_url=server.root_url, api_key=server.api_key) as second:
        assert (await second(asked(turns(1)))).model == DEFAULT_ANTHROPIC_MODEL
    assert sent_to(server, "openai")[0].body["model"] == "gpt-4o-mini"
    assert sent_to(server, "anthropic")[0].body["model"] == DEFAULT_ANTHROPIC_MODEL


@pytest.mark.parametrize("kind", [OpenAISummarizer, AnthropicSummarizer])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"max_input_tokens": 999}, "max_input_tokens"),
        ({"client": object(), "base_url": "http://x"}, "client"),
        ({"client": object(), "api_key": "k"}, "client"),
    ],
    ids=["no time", "not a time", "too little", "client and address", "client and key"],
)
def test_bad_options_are_refused_at_once(kind: Any, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        kind(**options)


@pytest.mark.parametrize("package", ["openai", "anthropic"])
def test_a_missing_extra_is_named(package: str) -> None:
    name = {"openai": "OpenAISummarizer", "anthropic": "AnthropicSummarizer"}[package]
    script = (
        f"import sys; sys.modules['{package}'] = None\n"  # Python then treats it as not installed
        "from recollect.strategies import summarizers\n"
        "summarizers.ExtractiveSummarizer()\n"
        f"summarizers.{name}()"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert f"{name} needs the extra '{package}': pip install 'recollect-memory[{package}]'" in ended.stderr


def test_importing_the_summarizers_loads_no_provider() -> None:
    script = (
        "import sys, recollect.strategies.summarizers\n"
        "sys.exit(bool({'openai', 'anthropic', 'agents', 'httpx2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
