"""The `recollect worker` command in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from recollect import SessionManager
from recollect.cli import main, services
from recollect.memory.run import Coverage
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import Hold, ProviderServer

from ..databases import Place
from .extractors import Hold as Waiting
from .kit import LONGEST, record, run_of, when
from .travellers import HOME, PATH, answer, home, saying

UNREACHABLE = ["--url", "postgresql://nobody@127.0.0.1:9/x"]
COMMAND = [str(Path(sys.executable).with_name("recollect")), "worker"]


def run(
    *arguments: str, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **(environment or {})}
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=variables,
        cwd=folder,
        check=False,
    )


@contextmanager
def started(*arguments: str, environment: Mapping[str, str]) -> "Iterator[subprocess.Popen[str]]":
    """A worker that has told that it works."""
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        assert process.stdout is not None
        assert "workers on" in process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def openai_at(server: ProviderServer) -> dict[str, str]:
    server.chat.reply_always(answer)
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": server.api_key}


@in_event_loop
async def test_it_learns_by_rule_until_nothing_is_pending(shared_place: Place) -> None:
    async with shared_place.open() as store:
        await record(store, "My name is Ada and I live in Lisbon.")
        done = await asyncio.to_thread(run, "--url", shared_place.url, "--until-idle", "--workers", "2")
        assert (done.returncode, done.stderr) == (0, "")
        first, pending, *_, last = done.stdout.splitlines()
        assert first.startswith("2 workers on ")
        assert first.endswith("model offline")
        assert pending == "0 conversations remembered, 1 pending, 0 failed"
        assert last == "1 conversations remembered, 0 pending, 0 failed"
        assert await store.coverage() == Coverage(remembered=1)


@in_event_loop
async def test_it_asks_a_model(file_place: Place) -> None:
    with ProviderServer() as server:
        async with file_place.open() as store:
            await store.add_entry("agent", "user", "profile", HOME)
            await record(store, saying(1))
            arguments = ("--url", file_place.url, "--until-idle", "--model", "openai:gpt-test")
            done = await asyncio.to_thread(run, *arguments, environment=openai_at(server))
            assert (done.returncode, done.stderr) == (0, "")
            memory = await store.get_memory("agent", "user")
            assert memory is not None
            assert memory.profile_content == [home(1)]
        assert {request.body["model"] for request in server.requests(PATH)} == {"gpt-test"}


@pytest.mark.proof
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@in_event_loop
async def test_a_signal_gives_its_runs_back(file_place: Place, how: signal.Signals) -> None:
    waiting = Waiting()
    with ProviderServer() as server:
        server.fail_next(PATH, Hold(waiting.go), times=100)
        async with file_place.open() as store:
            conversation = await record(store, saying(1))
            with started(
                "--url", file_place.url, "--model", "openai:gpt-test", environment=openai_at(server)
            ) as process:
                await when(store, conversation, status="running")
                process.send_signal(how)
                assert await asyncio.to_thread(process.wait, LONGEST) == 0
            waiting.go.set()
            found = await run_of(store, conversation)
            assert (found.status, found.attempts) == ("pending", 0)
        async with file_place.open(workers=1) as store:
            assert await store.drain(LONGEST) == Coverage(remembered=1), "the next takes it at once"


def test_it_works_on_the_database_of_the_environment(tmp_path: Path) -> None:
    with closing(SessionManager(str(tmp_path / "ours.db"))) as manager:
        asyncio.run(manager.list_sessions())
    done = run("--until-idle", folder=tmp_path, environment={"RECOLLECT_URL": "ours.db"})
    assert done.stdout.splitlines() == [
        "4 workers on ours.db, model offline",
        "0 conversations remembered, 0 pending, 0 failed",
    ]


def test_a_file_that_is_missing_is_not_created(tmp_path: Path) -> None:
    for place in (tmp_path / "nofile.db", tmp_path / "nofolder" / "x.db"):
        done = run("--url", str(place), "--until-idle")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith(f"recollect: no database at {place}")
    assert list(tmp_path.iterdir()) == []


@in_event_loop
async def test_it_reports_its_progress(file_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "_REPORT_INTERVAL", 0.001)
    lines: list[str] = []
    async with file_place.open() as store:
        await record(store, "My name is Ada and I live in Lisbon.")
        before = services._describe(await store.coverage())
        reporting = asyncio.create_task(services._report(store, before, lines.append))
        async with file_place.open(workers=1) as worker:
            await worker.drain(LONGEST)
        while not lines or not lines[-1].startswith("1 conversations remembered, 0 pending"):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        reporting.cancel()
    assert len(lines) == len(set(lines)), "a line is printed when something has changed"


def test_a_password_is_not_told(empty_postgres: str) -> None:
    url = empty_postgres.replace("postgres@", "postgres:secret@")
    done = run("--url", url, "--until-idle")
    assert done.returncode == 0
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--workers", "0"], 2, "must be a whole number of at least 1"),
        ([*UNREACHABLE, "--model", "gpt"], 1, "--model must be offline, openai:NAME or anthropic:NAME"),
        ([*UNREACHABLE, "--model", "openai:"], 1, "--model must be offline, openai:NAME or anthropic:NAME"),
        (["--url", "/proc/none/x.db"], 3, "no database at /proc/none/x.db"),
        (UNREACHABLE, 1, "no connection can be made"),
        (["--url", "redis://127.0.0.1"], 1, "only SQLite and PostgreSQL are supported here"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str
) -> None:
    assert exit_code_of(["worker", *arguments, "--until-idle"]) == code
    assert told in capsys.readouterr().err.splitlines()[-1]


def exit_code_of(arguments: list[str]) -> int:
    """In this process: there are many cases, and each of its own would take a second."""
    try:
        return main(arguments)
    except SystemExit as ended:
        return int(str(ended.code))
