"""Links of the OpenAPI document: which operations take an id that a response has.

They follow from the document itself. A response that always has the field `conversation_id`, at its top or in
an object of it, links to every operation whose only path parameter has that name, unless the request had the
same parameter.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_JSON = "application/json"


def add_links(document: dict[str, Any]) -> None:
    """Add links to all successful responses with ids."""
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    schemas = document["components"]["schemas"]
    for operation in operations:
        for status, response in operation["responses"].items():
            links = _links_from(operation, _schema_of(response, schemas), operations, schemas)
            if status.startswith("2") and links:
                response["links"] = links


def _links_from(
    operation: Mapping[str, Any],
    schema: Mapping[str, Any],
    operations: Sequence[Mapping[str, Any]],
    schemas: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        target["operationId"]: {
            "operationId": target["operationId"],
            "parameters": {name: f"$response.body#{pointer}"},
            "description": target["summary"],
        }
        for name, pointer in _texts_in(schema, schemas)
        if name not in _path_parameters(operation)
        for target in operations
        if _path_parameters(target) == [name]
    }


def _path_parameters(operation: Mapping[str, Any]) -> list[str]:
    return [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]


def _schema_of(response: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    return _resolved(response.get("content", {}).get(_JSON, {}).get("schema", {}), schemas)


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    resolved: Mapping[str, Any] = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
    return resolved


def _texts_in(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], at: str = ""
) -> Iterator[tuple[str, str]]:
    """The texts that a response always has: their names, and where they are."""
    for name in schema.get("required", ()):
        described = schema["properties"][name]
        if described.get("type") == "string":
            yield name, f"{at}/{name}"
        elif not at:
            yield from _texts_in(_resolved(described, schemas), schemas, f"/{name}")
