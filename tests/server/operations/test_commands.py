"""`recollect worker` and `recollect migrate` with the configuration of the service."""

import asyncio
import logging
from pathlib import Path

import pytest

from recollect.cli import main
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.server.access.budget import TokenLedger
from recollect.server.learner import open_learner
from recollect.server.settings import Settings
from recollect.sql.schema import VERSIONS
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer

from ...sessions.postgres.database import count_connections
from .kit import TALK
from .test_logs import _logging_as_it_was  # noqa: F401 - commands that run here configure it


async def _record(url: str, *tenants: str) -> None:
    async with MemoryStore(url, all_tenants=True, workers=0, embedder=None) as store:
        for tenant in tenants:
            await store.for_tenant(tenant).record_conversation("agent", "user", TALK)


async def _coverage(url: str, tenant: str) -> Coverage:
    async with MemoryStore(url, all_tenants=True, workers=0, embedder=None) as store:
        return await store.for_tenant(tenant).coverage()


def _configuration(folder: Path, url: str, more: str = "") -> str:
    path = folder / "recollect.toml"
    path.write_text(f'[database]\nurl = "{url}"\n[memory]\nembedder = "none"\nworkers = 0\n{more}', "utf-8")
    return str(path)


def _done(capsys: pytest.CaptureFixture[str]) -> list[str]:
    said = capsys.readouterr()
    assert said.err == ""
    return said.out.splitlines()


def test_a_worker_works_for_all_tenants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "recollect.db")
    asyncio.run(_record(url, "acme", "other"))
    assert main(["worker", "--config", _configuration(tmp_path, url), "--until-idle"]) == 0
    assert _done(capsys) == [
        f"4 workers on {url}, model offline",
        "0 conversations remembered, 2 pending, 0 failed",
        "2 conversations remembered, 0 pending, 0 failed",
    ]


def test_a_worker_works_for_one_if_that_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "recollect.db")
    asyncio.run(_record(url, "acme", "other"))
    arguments = ["--config", _configuration(tmp_path, url), "--until-idle", "--tenant", "acme"]
    assert main(["worker", *arguments, "--workers", "1"]) == 0
    assert _done(capsys)[-1] == "1 conversations remembered, 0 pending, 0 failed"
    assert asyncio.run(_coverage(url, "other")) == Coverage(pending=1)


def test_a_worker_takes_model_and_budget_from_the_configuration(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    server: ProviderServer,
) -> None:
    url = str(tmp_path / "recollect.db")
    asyncio.run(_record(url, "acme"))
    server.chat.reply_always(lambda _: '{"profile": [], "events": [], "insights": []}')
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", server.api_key)
    monkeypatch.setenv("RECOLLECT_MEMORY__EXTRACTOR", "openai:gpt-test")
    assert main(["worker", "--config", _configuration(tmp_path, url), "--until-idle"]) == 0
    assert _done(capsys)[0].endswith("model gpt-test")

    async def used() -> int:
        async with TokenLedger(url) as ledger:
            return await ledger.used("acme")

    assert asyncio.run(used()) > 0, "what the model was asked for counts against the tenant's budget"


def test_a_worker_logs_as_it_is_configured(
    tmp_path: Path, migrated_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = '[logging]\nlevel = "error"\nformat = "text"\n'
    asyncio.run(_record(migrated_url, "acme"))
    assert main(["worker", "--config", _configuration(tmp_path, migrated_url, more), "--until-idle"]) == 0
    assert _done(capsys)[-1] == "1 conversations remembered, 0 pending, 0 failed"
    assert logging.getLogger("recollect").getEffectiveLevel() == logging.ERROR


@in_event_loop
async def test_a_learner_holds_as_many_connections_as_it_is_told(migrated_url: str) -> None:
    database = {"url": migrated_url, "pool_size": 2}
    settings = Settings.model_validate({"database": database, "memory": {"embedder": "none", "workers": 0}})
    async with open_learner(settings) as learner:
        await asyncio.gather(*(learner.store.coverage() for _ in range(20)))
        assert count_connections(migrated_url) == 2


def test_a_worker_refuses_a_wrong_configuration_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _configuration(tmp_path, "x.db", "[server]\nprot = 1\n")
    assert main(["worker", "--config", path, "--until-idle"]) == 1
    assert "unknown setting server.prot" in capsys.readouterr().err


def test_migrate_finds_the_database_in_the_configuration(
    tmp_path: Path, migrated_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "--config", _configuration(tmp_path, migrated_url)]) == 0
    assert _done(capsys) == [f"already at {VERSIONS[-1]}"]
