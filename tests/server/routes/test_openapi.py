"""The OpenAPI document: where the service is, which codes there are, and which texts are times."""

from collections.abc import Iterator
from typing import Any

from recollect.server.problems import CODES

from .running import Running

TIMES = ("at", "as_of")


def test_the_document_says_where_the_service_is(service_on_sqlite: Running) -> None:
    assert [server["url"] for server in service_on_sqlite.document["servers"]] == ["/"]


def test_the_codes_of_problems_are_listed(service_on_sqlite: Running) -> None:
    code = service_on_sqlite.document["components"]["schemas"]["Problem"]["properties"]["code"]
    assert (code["type"], code["enum"]) == ("string", list(CODES))


def described_times(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for model, schema in document["components"]["schemas"].items():
        for name, described in schema.get("properties", {}).items():
            if name in TIMES or name.endswith("_at"):
                yield f"{model}.{name}", described
    for path, methods in document["paths"].items():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] in TIMES or parameter["name"].endswith("_at"):
                    yield f"{path} {parameter['name']}", parameter["schema"]


def test_every_time_is_a_date_time(service_on_sqlite: Running) -> None:
    found = list(described_times(service_on_sqlite.document))
    assert len(found) > 30
    for name, schema in found:
        choices = [each for each in schema.get("anyOf", [schema]) if each != {"type": "null"}]
        assert [each.get("format") for each in choices] == ["date-time"], name
