"""The page on the HTTP API names every route, and its commands are right."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qsl, urlsplit

import jsonschema_rs
import pytest

from recollect.moving.schema import LINE_SCHEMA
from recollect.server.problems import CODES
from recollect.server.schemas.chat import EVENTS, FailedCode

from .running import Running

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "http-api.md").read_text()
SECTION = re.compile(r"^### `(\w+) (\S+)`\n\n([^\n]+)\n\n```sh\n(.+?)\n```$", re.MULTILINE | re.DOTALL)
COMMANDS = {(method, path): command for method, path, _, command in SECTION.findall(PAGE)}


def test_the_page_has_exactly_the_routes_of_the_service(service_on_sqlite: Running) -> None:
    routes = {
        (method.upper(), path)
        for path, methods in service_on_sqlite.document["paths"].items()
        for method in methods
    }
    assert set(COMMANDS) == routes


def test_the_page_tells_every_event_of_a_stream_with_its_fields() -> None:
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (`.+?`) \| [A-Z]", PAGE, re.MULTILINE)
    told = {kind: re.findall(r"`(\w+)`", fields) for kind, fields in rows}
    assert told == {kind: list(model.model_fields) for kind, model in EVENTS.items()}


def test_the_page_tells_why_a_turn_can_fail_and_what_a_chat_answers_then() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \| ", PAGE, re.MULTILINE)
    assert rows == [(code, str(CODES[code].status)) for code in get_args(FailedCode)]


def read(command: str) -> tuple[str, str, Any, list[str]]:
    """The method, the URL, the body and the headers of a curl command."""
    words = shlex.split(command.replace("\\\n", ""))
    assert words.pop(0) == "curl"
    body, headers, method, url = None, [], None, ""
    while words:
        word = words.pop(0)
        if word == "-d":
            body = json.loads(words.pop(0))
        elif word == "-H":
            headers.append(words.pop(0))
        elif word == "-X":
            method = words.pop(0)
        elif word != "-N":
            url = word
    return method or ("GET" if body is None else "POST"), url, body, headers


@pytest.mark.parametrize(("method", "path"), sorted(COMMANDS))
def test_a_command_does_what_its_section_says(service_on_sqlite: Running, method: str, path: str) -> None:
    document = service_on_sqlite.document
    operation = document["paths"][path][method.lower()]
    used, url, body, headers = read(COMMANDS[method, path])
    assert used == method
    split = urlsplit(url.removeprefix("$URL"))
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), split.path)
    query = {name for name, _ in parse_qsl(split.query)}
    parameters = [each for each in operation.get("parameters", []) if each["in"] == "query"]
    assert query <= {each["name"] for each in parameters}
    assert {each["name"] for each in parameters if each["required"]} <= query
    assert ("Authorization: Bearer $KEY" in headers) == path.startswith("/v1/")
    assert (body is not None) == ("requestBody" in operation)
    if body is not None:
        content = operation["requestBody"]["content"]
        if "application/json" in content:
            schema = {**content["application/json"]["schema"], "components": document["components"]}
        else:  # lines
            schema = LINE_SCHEMA
        jsonschema_rs.validate(schema, body)
