"""`recollect mcp`, started by real clients, and by one that speaks it badly."""

import argparse
import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recollect import MemoryStore, RecollectError
from recollect.cli.services import add_mcp_parser
from recollect.testing.contract import in_event_loop

from .clients import COMMAND, environment, over_stdio, recalled, remember, words_of


@in_event_loop
async def test_a_client_starts_it_and_what_it_remembers_outlives_it(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    async with over_stdio(database, "--user", "ada", mode="legacy") as client:
        entry_id = await remember(client, "The user lives in Lisbon. 她住在里斯本。")
    async with over_stdio(database, RECOLLECT_USER="ada", RECOLLECT_AGENT="assistant") as client:
        assert entry_id in await recalled(client, "Lisbon")
        assert "她住在里斯本" in await recalled(client, "里斯本")


@in_event_loop
async def test_the_user_the_agent_and_the_tenant_are_those_it_was_started_for(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    given = ("--user", "ada", "--agent", "helper", "--tenant", "acme")
    async with over_stdio(database, *given, RECOLLECT_USER="bob", RECOLLECT_AGENT="other") as client:
        await remember(client, "The user lives in Lisbon.")
    for tenant, agent, user, count in (
        ("acme", "helper", "ada", 1),
        ("default", "helper", "ada", 0),
        ("acme", "other", "bob", 0),
    ):
        async with MemoryStore(database, embedder=None, workers=0, tenant=tenant) as store:
            assert len(await store.list_entries(agent, user)) == count


@pytest.mark.proof
@in_event_loop
async def test_two_clients_at_once_share_a_memory(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    one, two = (over_stdio(database, "--user", "ada") for _ in range(2))
    async with one, two:
        places = ["Lisbon", "Porto", "Faro", "Braga", "Evora", "Aveiro", "Sintra", "Tomar"]
        texts = [f"The user has been to {place}." for place in places]
        await asyncio.gather(*(remember(client, text) for client in (one, two) for text in texts[::-1]))
        for client in (one, two):
            told = words_of(await client.call_tool("list", {"limit": 50}))
            assert all(text in told for text in texts)


def speak(database: Path, lines: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with these lines as its whole input."""
    return subprocess.run(
        [*COMMAND, *arguments], input="".join(f"{line}\n" for line in lines), env=environment(database),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def started(database: Path) -> Any:
    """The command, running, with its input and output in our hands."""
    return subprocess.Popen(
        [*COMMAND, "--user", "ada"], env=environment(database),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def request(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


HELLO = request(
    0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "0"}
)  # fmt: skip
READY = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})


def test_nothing_but_the_protocol_is_on_its_output_whatever_comes_in(tmp_path: Path) -> None:
    secret = "my-secret-text"
    lines = [
        HELLO,
        READY,
        f"this is no JSON, {secret}",
        "[]",
        json.dumps(
            {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": secret, "arguments": [1]}}
        ),
        request(8, "no/such/method", text=secret),
        request(9, "tools/call", name="remember", arguments={"text": secret * 100, "kind": "profile"}),
        request(10, "tools/call", name="remember", arguments={"text": secret, "kind": "profile"}),
    ]
    process = started(tmp_path / "memory.db")
    process.stdin.write("".join(f"{line}\n" for line in lines))
    process.stdin.flush()
    answers: list[dict[str, Any]] = []
    while not {7, 8, 9, 10} <= {answer.get("id") for answer in answers}:
        answers.append(json.loads(process.stdout.readline()))
    rest, told = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "")
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    by_id = {answer.get("id"): answer for answer in answers}
    assert "error" in by_id[7]
    assert by_id[8]["error"]["code"] == -32601
    assert by_id[9]["result"]["isError"] is True
    assert by_id[10]["result"]["isError"] is False
    assert secret not in told
    assert "Traceback" not in told


@pytest.mark.proof
def test_a_client_that_goes_away_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    process = started(tmp_path / "memory.db")
    process.stdin.write(f"{HELLO}\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 0
    process.stdout.close()  # nobody reads any more
    calls = [request(n, "tools/call", name="recall", arguments={"query": "who"}) for n in range(1, 20)]
    _, told = process.communicate("\n".join([READY, *calls, ""]), timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in told


WRONG = [
    ((), "the user is missing: give --user NAME, or set RECOLLECT_USER"),
    (("--user", ""), "--user must not be empty"),
    (("--user", "ada", "--port", "80"), "--host and --port need --http"),
    (("--http", "--tenant", "acme"), "--tenant cannot be used with --http"),
    (("--http", "--host", "0.0.0.0"), "no API keys configured, so the server cannot listen on 0.0.0.0"),
    (("--http", "--host", "no.such.host.invalid"), "no API keys configured, so the server cannot listen on"),
    (("--user", "ada", "--config", "/no/such/file"), "the configuration /no/such/file cannot be read"),
]


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_mcp_parser(parser.add_subparsers())
    return parser.parse_args(["mcp", *arguments])


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_it_says_why_it_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.delenv("RECOLLECT_USER", raising=False)
    monkeypatch.setenv("RECOLLECT_URL", str(tmp_path / "memory.db"))
    options = parsed(*arguments)
    with pytest.raises((RecollectError, ValueError), match=re.escape(words)):
        options.run(options)


def test_what_it_says_when_it_does_not_start_is_one_line_beside_the_protocol(tmp_path: Path) -> None:
    ended = speak(tmp_path / "memory.db", [], "--user", "ada", "--url", "/proc/nothing/memory.db")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.splitlines() == [
        "recollect: no folder /proc/nothing: create it, or pass another --url"
    ]


def test_a_port_must_be_a_port(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--http", "--port", "70000")
    assert "from 0 to 65535" in capsys.readouterr().err
