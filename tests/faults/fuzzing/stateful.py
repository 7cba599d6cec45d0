"""Schemathesis in sequences: each request may ask for what the one before it made."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ...server.proof.places import Place
from ...server.proof.schemas import HOOKS, _configuration, _document, _learned_ids

# What makes something, and the name of its id: in the answer, and in the paths where it can be asked for.
_MAKERS = {"conversation_id": "/v1/conversations", "memory_id": "/v1/memories"}
# The bodies of these name something else, which is not there; or they end what others go on with.
_NOT_FOLLOWED = ("branches.switch", "branches.create", "conversations.delete", "memories.delete")
_MORE = """
[generation]
mode = "positive"

[phases.stateful.inference]
algorithms = []
"""


def run_sequences(place: Place, folder: Path, count: int) -> "subprocess.CompletedProcess[str]":
    """So many sequences of requests, with all checks; the report is in what it printed."""
    (folder / "openapi.json").write_text(json.dumps(with_links(_document(place))))
    told = _configuration(place.key(), *_learned_ids(place)) + _MORE
    # Whether the service takes whatever fits the schema is not what is asked here.
    told = told.replace("enabled = true", "enabled = true\npositive_data_acceptance.enabled = false", 1)
    (folder / "schemathesis.toml").write_text(told)
    (folder / "hooks.py").write_text(HOOKS)
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", "schemathesis.toml"]
    command += ["run", "openapi.json", "--url", place.url, "--no-color", "--continue-on-failure"]
    command += ["--phases", "stateful", "--max-examples", str(count), "--generation-deterministic"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def with_links(document: dict[str, Any]) -> dict[str, Any]:
    """The description of the service, with where an id that was made leads to."""
    for name, maker in _MAKERS.items():
        links = {
            operation["operationId"].replace(".", "_"): {
                "operationId": operation["operationId"],
                "parameters": {name: f"$response.body#/{name}"},
            }
            for path, methods in document["paths"].items()
            if f"{{{name}}}" in path and path.count("{") == 1
            for operation in methods.values()
            if operation["operationId"] not in _NOT_FOLLOWED
        }
        document["paths"][maker]["post"]["responses"]["201"]["links"] = links
    return document
