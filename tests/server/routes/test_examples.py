"""The examples of the OpenAPI document are sent to a real server, in an order in which they make sense.

The document tells one story: wherever an answer has an id where its example has one, the real id takes the
place of that in all requests that follow.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from .conftest import settings_for
from .running import Running, running
from .test_threads import run_thread

Operation = dict[str, Any]

METHODS = ("get", "post", "put", "patch", "delete")
# What must come after others; all else is in the order of the document.
LATE = [
    "branches.switch",
    "branches.delete",
    "conversations.close",
    "runs.retry",
    "entries.change",
    "entries.delete",
]
# Answers that are right for an example although nothing was done.
REFUSED = {"runs.retry": 409}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def told_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service in which nothing but the story has happened."""
    path = tmp_path_factory.mktemp("examples") / "recollect.db"
    with running(settings_for(str(path))) as service:
        run_thread(path, "trip-to-lisbon", "ada", "Which train?")
        yield service


def operations(document: dict[str, Any]) -> list[tuple[str, str, Operation]]:
    found = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in METHODS and path.startswith("/v1/")
    ]
    return sorted(found, key=lambda each: rank(each[0], each[1], each[2]["operationId"]))


def rank(method: str, path: str, name: str) -> tuple[int, int]:
    """First what makes something, then what reads or changes it, and at last what deletes, parts first."""
    if name in LATE:
        return (3, LATE.index(name))
    if method == "delete":
        return (4, -path.count("/"))
    makes = name in ("conversations.create", "memories.create", "entries.create", "messages.append")
    return (0 if makes else 1 if method == "get" else 2, 0)


@dataclass
class Story:
    """What has happened so far: the ids of the examples, with those that they really are."""

    service: Running
    client: httpx2.Client
    real: dict[str, str] = field(default_factory=dict)
    tag: str = "*"

    def send(self, method: str, path: str, operation: Operation) -> httpx2.Response:
        query: dict[str, str] = {}
        headers = {"If-Match": self.tag}
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", self.now(parameter["example"]))
            elif parameter["in"] == "query" and "example" in parameter:
                query[parameter["name"]] = self.now(parameter["example"])
        contents = operation.get("requestBody", {}).get("content", {})
        lines = contents.get("application/jsonl", {}).get("example")
        if lines is not None:
            headers["Content-Type"] = "application/jsonl"
            return self.client.request(method.upper(), path, content=lines, params=query, headers=headers)
        body = self.now(self.body_of(operation))
        return self.client.request(method.upper(), path, json=body, params=query, headers=headers)

    @staticmethod
    def body_of(operation: Operation) -> Any:
        return operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")

    def now(self, told: Any) -> Any:
        """An example with the ids that are real."""
        if isinstance(told, str):
            return self.real.get(told, told)
        if isinstance(told, dict):
            return {name: self.now(value) for name, value in told.items()}
        return [self.now(each) for each in told] if isinstance(told, list) else told

    def learn(self, example: Any, answer: Any) -> None:
        """Take note of the ids that stand where the example has its own."""
        if isinstance(example, dict) and isinstance(answer, dict):
            for name in example.keys() & answer.keys():
                self.learn(example[name], answer[name])
        elif isinstance(example, list) and isinstance(answer, list):
            for told, real in zip(example, answer, strict=False):
                self.learn(told, real)
        elif isinstance(example, str) and isinstance(answer, str) and UUID.fullmatch(example):
            self.real.setdefault(example, answer)


def strict(schema: Any) -> Any:
    """A schema that takes no field that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        made["additionalProperties"] = False
    return made


def check(document: dict[str, Any], operation: Operation, answer: httpx2.Response) -> None:
    """Whether an answer is as the document says."""
    described = operation["responses"][str(answer.status_code)]
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if not answer.content:
        assert "content" not in described
        return
    media = described["content"][kind]
    if kind.endswith("json"):
        whole = {
            **strict(media["schema"]),
            "components": {"schemas": strict(document["components"]["schemas"])},
        }
        jsonschema_rs.validate(whole, answer.json())


def test_every_example_is_answered_as_documented(told_service: Running) -> None:
    with told_service.client() as client:
        story = Story(told_service, client)
        for method, path, operation in operations(told_service.document):
            name = operation["operationId"]
            answer = story.send(method, path, operation)
            told_service.learn()  # so that what comes next finds what was learned
            wanted = REFUSED.get(name, int(next(iter(operation["responses"]))))
            assert answer.status_code == wanted, f"{name}: {answer.status_code} {answer.text}"
            check(told_service.document, operation, answer)
            if "json" in answer.headers.get("content-type", "") and name not in REFUSED:
                content = operation["responses"][str(answer.status_code)]["content"]["application/json"]
                story.learn(content.get("example"), answer.json())


def test_every_route_has_an_example(told_service: Running) -> None:
    lacking = []
    for _, path, operation in operations(told_service.document):
        name = operation["operationId"]
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body is not None and "example" not in body and "examples" not in body:
            lacking.append(f"{name}: body")
        for status, response in operation["responses"].items():
            for kind, media in response.get("content", {}).items():
                if kind.endswith("json") and "example" not in media and "examples" not in media:
                    lacking.append(f"{name}: {status} {kind}")
        lacking += [
            f"{name}: {parameter['name']} in {path}"
            for parameter in operation.get("parameters", [])
            if parameter["required"] and "example" not in parameter
        ]
    assert lacking == []


def test_every_example_is_what_its_schema_says(told_service: Running) -> None:
    schemas = told_service.document["components"]["schemas"]
    components = {"components": {"schemas": strict(schemas)}}
    for _, _, operation in operations(told_service.document):
        contents = [operation.get("requestBody", {}).get("content", {})]
        contents += [response.get("content", {}) for response in operation["responses"].values()]
        for media in itertools.chain.from_iterable(content.values() for content in contents):
            examples = [each["value"] for each in media.get("examples", {}).values()]
            examples += [media["example"]] if "example" in media else []
            for example in examples:
                jsonschema_rs.validate({**strict(media["schema"]), **components}, example)


def test_every_route_is_described(told_service: Running) -> None:
    tags = {tag["name"] for tag in told_service.document["tags"]}
    names = []
    for _, path, operation in operations(told_service.document):
        assert operation["summary"], path
        assert operation["description"], path
        assert set(operation["tags"]) <= tags, path
        assert operation["security"], path
        names.append(operation["operationId"])
        for status, response in operation["responses"].items():
            assert response["description"] not in ("", "Successful Response"), f"{path} {status}"
            if status >= "400":
                assert "application/problem+json" in response["content"], f"{path} {status}"
        assert {"401", "403", "422", "429", "500", "503"} <= set(operation["responses"]), path
    assert len(names) == len(set(names))


def test_the_document_tells_the_limits_that_are_configured(told_service: Running) -> None:
    schemas = told_service.document["components"]["schemas"]
    assert schemas["NewConversation"]["properties"]["messages"]["maxItems"] == 50
    listing = told_service.document["paths"]["/v1/conversations"]["get"]["parameters"]
    (limit,) = [parameter["schema"] for parameter in listing if parameter["name"] == "limit"]
    assert (limit["maximum"], limit["default"]) == (20, 20)


def test_the_document_is_served_as_it_is(told_service: Running) -> None:
    with told_service.client() as client:
        served = client.get("/openapi.json")
    assert served.status_code == 200
    assert json.loads(served.text) == told_service.document
