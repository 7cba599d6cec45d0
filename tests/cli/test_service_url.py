"""Commands on a store in a service."""

import json
import os
import subprocess
import sys

import pytest

from ..server.routes.conftest import keyed_service as keyed_service
from ..server.routes.running import Running

MCP_CALLS = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "remember", "arguments": {"text": "Ada plays the cello.", "kind": "profile"}},
    },
]


def recollect(service: Running, key: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recollect", *words, "--url", service.url]
    return subprocess.run(command, env=_environment(key), capture_output=True, text=True, timeout=100)


def _environment(key: str) -> dict[str, str]:
    return {**os.environ, "RECOLLECT_KEY": key, "RECOLLECT_USER": "ada"}


@pytest.fixture
def key(keyed_service: Running) -> str:
    return keyed_service.make_key("admin", "of the command line")


def test_memory_in_a_service_is_written_read_exported_and_erased(keyed_service: Running, key: str) -> None:
    said = recollect(keyed_service, key, "remember", "Ada lives in Lisbon.", "--json")
    assert said.returncode == 0, said.stderr
    entry_id = json.loads(said.stdout)["content_id"]
    found = recollect(keyed_service, key, "recall", "where does she live?", "--json")
    assert [line["id"] for line in json.loads(found.stdout)["lines"]] == [entry_id]
    exported = recollect(keyed_service, key, "export", "--json")
    assert [each["content_id"] for each in json.loads(exported.stdout)["entries"]] == [entry_id]
    erased = recollect(keyed_service, key, "erase", "--yes", "--json")
    assert json.loads(erased.stdout)["counts"]["entries"] == 1


def test_a_wrong_key_is_named(keyed_service: Running) -> None:
    refused = recollect(keyed_service, "rk_wrong", "memory", "show")
    assert refused.returncode == 1
    assert "key" in refused.stderr
    assert "rk_wrong" not in refused.stderr


def test_a_command_for_a_database_refuses_a_service(keyed_service: Running, key: str) -> None:
    refused = recollect(keyed_service, key, "sessions", "list")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr


def test_mcp_serves_the_memory_of_a_service(keyed_service: Running, key: str) -> None:
    command = [sys.executable, "-m", "recollect", "mcp", "--url", keyed_service.url]
    with subprocess.Popen(
        command, env=_environment(key), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as served:
        assert served.stdin is not None
        assert served.stdout is not None
        served.stdin.writelines(json.dumps(call) + "\n" for call in MCP_CALLS)
        served.stdin.flush()
        answers = [json.loads(served.stdout.readline()) for _ in range(2)]
        served.stdin.close()
    assert not answers[1]["result"].get("isError"), answers
    listed = recollect(keyed_service, key, "memory", "show", "--json")
    assert "Ada plays the cello." in listed.stdout
