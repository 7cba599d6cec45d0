"""What the first chat needs is loaded after the start, if an agent has a model."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from recollect.providers.openai.runtime import AgentRuntime
from recollect.server import service
from recollect.testing.contract import in_event_loop

from .kit import serving

_MODEL = {"chat": {"model": "gpt-test", "base_url": "http://localhost/v1", "api_key": "test-key"}}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was loaded; nothing is, and at once."""
    found: list[str] = []

    async def load(self: AgentRuntime) -> None:
        found.append(self.model_of("assistant"))

    monkeypatch.setattr(AgentRuntime, "load", load)
    monkeypatch.setattr(service, "_PREPARE_AFTER", 0)
    return found


@pytest.mark.parametrize(("given", "expected"), [(_MODEL, ["gpt-test"]), ({}, [])], ids=["model", "offline"])
def test_a_service_with_a_model_is_prepared(
    tmp_path: Path, loaded: list[str], given: dict[str, Any], expected: list[str]
) -> None:
    @in_event_loop
    async def start() -> None:
        async with serving(str(tmp_path / "recollect.db"), given) as served:
            assert served.service.preparing is not None
            await served.service.preparing

    start()
    assert loaded == expected


def test_a_service_that_cannot_be_prepared_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: AgentRuntime) -> None:
        raise ImportError("a text of its own")

    monkeypatch.setattr(AgentRuntime, "load", fail)
    monkeypatch.setattr(service, "_PREPARE_AFTER", 0)

    @in_event_loop
    async def start() -> None:
        async with serving(str(tmp_path / "recollect.db"), _MODEL) as served:
            assert served.service.preparing is not None
            await served.service.preparing
            assert (await served.client.get("/healthz")).status_code == 200

    with caplog.at_level(logging.WARNING, "recollect.server"):
        start()
    assert [record.message for record in caplog.records] == ["chat not prepared"]


def test_a_service_that_stops_at_once_waits_for_no_preparation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_PREPARE_AFTER", 3600)

    @in_event_loop
    async def start() -> None:
        async with serving(str(tmp_path / "recollect.db"), _MODEL) as served:
            preparing = served.service.preparing
        assert preparing is not None
        await asyncio.wait([preparing])
        assert preparing.cancelled()

    start()
