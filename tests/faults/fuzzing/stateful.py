"""Schemathesis in sequences: each request may ask for what the one before it made."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ...server.proof.places import Place
from ...server.proof.schemas import HOOKS, _configuration, _document, _learned_ids

_MAKERS = ("conversations.create", "memories.create")
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
    (folder / "openapi.json").write_text(json.dumps(with_fewer_links(_document(place))))
    told = _configuration(place.key(), *_learned_ids(place)) + _MORE
    # Whether the service takes whatever fits the schema is not what is asked here.
    told = told.replace("enabled = true", "enabled = true\npositive_data_acceptance.enabled = false", 1)
    (folder / "schemathesis.toml").write_text(told)
    (folder / "hooks.py").write_text(HOOKS)
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", "schemathesis.toml"]
    command += ["run", "openapi.json", "--url", place.url, "--no-color", "--continue-on-failure"]
    command += ["--phases", "stateful", "--max-examples", str(count), "--generation-deterministic"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def with_fewer_links(document: dict[str, Any]) -> dict[str, Any]:
    """The description of the service, with the links of what makes something, which others go on with."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                links = response.pop("links", {})
                if operation["operationId"] in _MAKERS:
                    followed = {name: link for name, link in links.items() if name not in _NOT_FOLLOWED}
                    response["links"] = followed
    return document
