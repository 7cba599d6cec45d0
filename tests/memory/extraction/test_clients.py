"""Clients are opened on first use, one for each event loop. A given client is never closed."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import anthropic
import openai
import pytest

from recollect.errors import ModelUnavailableError
from recollect.memory.extraction import AnthropicExtractor, OpenAIExtractor
from recollect.memory.pipeline.stages import Extractor, Modification
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Refuse

from ...providers.clients import anthropic_of, client_of
from .kit import (
    MOVED,
    NOTHING,
    NOTHING_NEW,
    PATHS,
    bodies_sent,
    each_provider,
    extractor_of,
    extractor_with,
    script_of,
)


def settled(server: ProviderServer) -> None:
    """Wait until the server has seen all connections close."""
    for _ in range(500):
        if not server.open_connections:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{server.open_connections} connections are still open")


@each_provider
def test_an_extractor_works_in_one_event_loop_after_another(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply_always(NOTHING_NEW)
    extractor: Extractor = extractor_of(server, provider)
    for _ in range(3):
        assert asyncio.run(extractor.modification(MOVED)).value == NOTHING
        settled(server)  # a loop that ends closes its connections


@each_provider
def test_an_extractor_works_in_two_event_loops_at_once(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply_always(NOTHING_NEW)
    extractor = extractor_of(server, provider)
    made: list[Modification] = []

    async def work() -> None:
        made.extend([(await extractor.modification(MOVED)).value for _ in range(3)])

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [NOTHING] * 6
    settled(server)


@each_provider
@in_event_loop
async def test_calls_in_one_loop_share_a_client_until_it_is_closed(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always(NOTHING_NEW)
    extractor = extractor_of(server, provider)
    for _ in range(3):
        await extractor.modification(MOVED)
    assert server.open_connections == 1, "an answer that was read gives its connection back"
    await extractor.aclose()
    await asyncio.to_thread(settled, server)
    await extractor.aclose()
    assert (await extractor.modification(MOVED)).value == NOTHING, "it can be used again"
    await extractor.aclose()


@each_provider
@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "with connections of its own"])
def test_a_client_that_was_given_is_used_and_never_closed(
    server: ProviderServer, provider: str, is_plain: bool
) -> None:
    script_of(server, provider).reply_always(NOTHING_NEW)
    options = {"api_key": server.api_key, "default_headers": {"x-tenant": "t"}}
    plain, own = (
        (openai.AsyncOpenAI, client_of)
        if provider != "anthropic"
        else (anthropic.AsyncAnthropic, anthropic_of)
    )
    url = server.base_url if provider != "anthropic" else server.root_url

    async def use() -> None:
        client: Any = plain(base_url=url, **options) if is_plain else own(server, **options)
        async with client:
            async with extractor_with(client, provider) as extractor:
                assert (await extractor.modification(MOVED)).value == NOTHING
            assert not client.is_closed()
            async with extractor_with(client, provider) as extractor:
                assert (await extractor.modification(MOVED)).value == NOTHING

    asyncio.run(use())
    assert {request.headers["x-tenant"] for request in server.requests()} == {"t"}


@each_provider
@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "with connections of its own"])
@in_event_loop
async def test_a_client_that_would_retry_does_not(
    server: ProviderServer, provider: str, is_plain: bool
) -> None:
    """The pipeline retries a run from its last finished stage. Retries of the client would multiply that."""
    server.fail_next(PATHS[provider], Refuse(429, retry_after=0.01), times=5)
    plain, own = (
        (openai.AsyncOpenAI, client_of)
        if provider != "anthropic"
        else (anthropic.AsyncAnthropic, anthropic_of)
    )
    url = server.base_url if provider != "anthropic" else server.root_url
    client: Any = (
        plain(base_url=url, api_key=server.api_key, max_retries=3) if is_plain else own(server, max_retries=3)
    )
    async with client, extractor_with(client, provider) as extractor:
        with pytest.raises(ModelUnavailableError):
            await extractor.modification(MOVED)
    assert len(server.requests()) == 1


@in_event_loop
async def test_the_models_are_those_that_are_documented(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", server.api_key)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", server.api_key)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
    server.chat.reply(NOTHING_NEW)
    server.messages.reply(NOTHING_NEW)
    async with OpenAIExtractor() as first, AnthropicExtractor() as second:
        await first.modification(MOVED)
        await second.modification(MOVED)
    assert (first.model, second.model) == ("gpt-4o-mini", "claude-sonnet-5-5")
    assert bodies_sent(server, "openai")[0]["model"] == first.model
    assert bodies_sent(server, "anthropic")[0]["model"] == second.model


@pytest.mark.parametrize("kind", [OpenAIExtractor, AnthropicExtractor])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"max_input_tokens": 3_999}, "max_input_tokens"),
        ({"client": object(), "base_url": "http://x"}, "client"),
        ({"client": object(), "api_key": "k"}, "client"),
    ],
    ids=["no time", "not a time", "too little", "client and address", "client and key"],
)
def test_bad_options_are_refused_at_once(kind: Any, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        kind(**options)


def test_an_answer_must_have_room() -> None:
    with pytest.raises(ValueError, match="max_output_tokens"):
        AnthropicExtractor(max_output_tokens=0)


@pytest.mark.parametrize("package", ["openai", "anthropic"])
def test_a_missing_extra_is_named(package: str) -> None:
    name = {"openai": "OpenAIExtractor", "anthropic": "AnthropicExtractor"}[package]
    script = (
        f"import sys; sys.modules['{package}'] = None\n"  # Python then treats it as not installed
        f"from recollect.memory import extraction\nextraction.{name}()"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert f"{name} needs the extra '{package}': pip install 'recollect-memory[{package}]'" in ended.stderr


def test_importing_the_extractors_loads_no_provider() -> None:
    script = (
        "import sys, recollect.memory.extraction\n"
        "sys.exit(bool({'openai', 'anthropic', 'agents', 'httpx2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
