"""Schemathesis against a running service, by the OpenAPI document that the service itself gives."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

from .places import Place, record
from .waiting import wait_until

LONG = os.environ.get("RECOLLECT_TEST_SCHEMATHESIS_SECONDS")
"""For how long each database is tried; without it, as long as fits into every run of the tests."""

# A JSON Schema says less than a service knows. These take what only the service can judge: a cursor, the name
# of an agent, a version, a time in one of many forms, what makes sense together; or a count, which it will
# not have written as 2.0. What fits the schema may be refused there with 412, 422 or 428.
_JUDGED_BY_MORE_THAN_SCHEMA = [
    "audit.list",
    "branches.create",
    "chat.run",
    "chat.stream",
    "conversations.create",
    "conversations.list",
    "conversations.memory.change",
    "conversations.runs",
    "conversations.search",
    "conversations.search_users",
    "conversations.view",
    "coverage.get",
    "entries.add",
    "entries.change",
    "entries.create",
    "entries.list",
    "events.list",
    "memories.change",
    "memories.create",
    "memories.get",
    "memories.list",
    "memories.of",
    "memories.prompt",
    "memories.recall",
    "memories.search",
    "memories.search_users",
    "messages.append",
    "messages.list",
    "runs.list",
    "threads.list",
    "threads.steps",
    "usage.list",
    "users.list",
]

HOOKS = """
import schemathesis


@schemathesis.serializer("application/jsonl", "application/x-ndjson")
def send_lines(context, value):
    return {"data": value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")}
"""


def run_schemathesis(place: Place, folder: Path, examples: int) -> "subprocess.CompletedProcess[str]":
    """All checks, in all phases; its report is in what it printed."""
    document = _document(place)
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "hooks.py").write_text(HOOKS)
    (folder / "schemathesis.toml").write_text(_configuration(place.key(), *_learned_ids(place)))
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", "schemathesis.toml"]
    command += ["run", "openapi.json", "--url", place.url, "--no-color", "--continue-on-failure"]
    if LONG:
        command += ["--max-time", LONG, "--generation-database", "none"]
    else:
        command += ["--max-examples", str(examples), "--generation-deterministic"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _document(place: Place) -> dict[str, Any]:
    document: dict[str, Any] = httpx2.get(f"{place.url}/openapi.json").json()
    for methods in document["paths"].values():
        for operation in methods.values():
            # A service without keys needs none, and says so; this one has keys.
            if "security" in operation:
                operation["security"] = [need for need in operation["security"] if need]
    return document


def _learned_ids(place: Place) -> tuple[str, str]:
    """A run and an entry: they come of learning, so no request that makes something is answered with one."""
    with place.client() as client:
        conversation = record(client, "somebody who stays", "I live in Lisbon.")["conversation_id"]

        def learned() -> Any:
            (run,) = client.get(f"/v1/conversations/{conversation}/runs").json()["items"]
            return run if run["status"] == "done" else None

        run = wait_until(learned)
        entries = client.get(f"/v1/memories/{run['memory_id']}/entries").json()["items"]
        return run["run_id"], entries[0]["content_id"]


def _configuration(key: str, run_id: str, content_id: str) -> str:
    return f"""
hooks = "hooks.py"

[headers]
Authorization = "Bearer {key}"

[checks]
enabled = true

[[operations]]
include-operation-id = {json.dumps(_JUDGED_BY_MORE_THAN_SCHEMA)}
checks.positive_data_acceptance.enabled = false

[[operations]]
include-operation-id = "import"
checks.negative_data_rejection.enabled = false  # any text has lines; those that are wrong are listed
checks.positive_data_acceptance.enabled = false  # its first line must be a record

[[operations]]
include-operation-id = ["entries.get", "entries.history", "entries.why", "entries.change"]
parameters = {{ "path.content_id" = "{content_id}" }}

[[operations]]
include-operation-id = ["runs.get", "runs.retry"]
parameters = {{ "path.run_id" = "{run_id}" }}
"""
