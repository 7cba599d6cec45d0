"""The OpenAPI document, completed with security, problem responses, limits, examples and links."""

import asyncio
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse

from .links import add_links
from .problems import MEDIA_TYPE
from .schemas.base import HIT_LIMIT, MAX_ITEMS, PAGE_SIZE
from .schemas.chat import EVENTS
from .schemas.problems import ProblemDocument, add_problem, problems
from .settings import ServerSettings

PATH = "/openapi.json"
_DESCRIPTION = """A memory layer for AI agents. It records conversations, learns from them, answers what it
knows about a user and why, runs agents that remember, and exports or erases the data of a user.

Lists are paged: send the `next_cursor` of a page as `cursor`. A POST that creates something may have an
`Idempotency-Key`. Errors are problem documents (RFC 9457) with a stable `code`."""

_TAGS = {
    "conversations": "Record, read, search, branch and erase conversations.",
    "memories": "What an agent knows about a user.",
    "entries": "Single remembered facts, with their evidence and history.",
    "runs": "The progress of learning, and its failures.",
    "chat": "Talk to agents that remember.",
    "sessions": "Logs of items, for programs that keep their sessions in the service.",
    "threads": "Threads of LangGraph: list them, and read their branches and steps.",
    "import": "Bring conversations and entries along from other systems.",
    "users": "List users, and export or erase their data.",
    "access": "The caller, the audit log, and model usage.",
    "operations": "Liveness, readiness and metrics.",
}
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "rk_…",
    "description": "An API key from `recollect keys create`. On loopback, none is needed before the first.",
}
_READING = {"get", "head"}
_SECURITY: list[dict[str, list[str]]] = [{"key": []}, {}]
_SCHEMAS = "#/components/schemas/"
_JSON = "application/json"
_DEFAULT_DESCRIPTION = "Successful Response"  # FastAPI's own
_OUR_SCHEMAS = "recollect.server.schemas"
_HEADERS = {
    "401": {"WWW-Authenticate": "How to send a key."},
    "405": {"Allow": "The allowed methods."},
    "429": {"Retry-After": "Seconds to wait."},
    "503": {"Retry-After": "Seconds to wait."},
}


def describe_api(app: FastAPI) -> None:
    """Make the application return and serve the completed document.

    It is built at the first request for it, in a thread: that takes some tenths of a second.
    """

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    async def serve(_: Request) -> JSONResponse:
        return JSONResponse(await asyncio.to_thread(document))

    app.openapi = document  # type: ignore[method-assign]
    app.add_route(PATH, serve, include_in_schema=False)


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=_DESCRIPTION,
        routes=app.routes,
        servers=[{"url": "/", "description": "The service that serves this document."}],
        tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
        license_info={"name": "MIT", "identifier": "MIT"},
    )
    _add_components(document)
    for method, path, operation in _operations(document):
        if path.startswith("/v1/"):
            _guard(operation, changes=method not in _READING)
        _describe(operation, document["components"]["schemas"])
        _add_headers(operation)
        _set_query_limits(operation, app.state.settings.server)
    _set_body_limits(document["components"]["schemas"], app.state.settings.server)
    add_links(document)
    return document


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _add_components(document: dict[str, Any]) -> None:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    models: list[type[BaseModel]] = [ProblemDocument, *EVENTS.values()]
    inputs: list[tuple[type[BaseModel], JsonSchemaMode]] = [(model, "validation") for model in models]
    made = models_json_schema(inputs, ref_template=_SCHEMAS + "{model}")[1]["$defs"]
    made["Problem"] = made.pop("ProblemDocument")
    for name, schema in made.items():
        schemas.setdefault(name, schema)
    _restore_examples(schemas)
    components["securitySchemes"] = {"key": _KEY}


def _guard(operation: dict[str, Any], *, changes: bool) -> None:
    """Add the security requirement and the problems that any guarded route may return."""
    operation["security"] = _SECURITY
    for status, response in problems("read").items():
        known = operation["responses"].get(str(status))
        if known is None or MEDIA_TYPE not in known.get("content", {}):
            operation["responses"][str(status)] = response
    if changes:
        add_problem(operation["responses"]["403"], "cross_origin_request")


# --- examples ---


def _restore_examples(schemas: dict[str, Any]) -> None:
    """Restore the examples of models: FastAPI drops null values from them."""
    for model in _models(BaseModel):
        extra = model.model_config.get("json_schema_extra")
        if model.__name__ in schemas and isinstance(extra, dict) and "examples" in extra:
            schemas[model.__name__]["examples"] = extra["examples"]


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.startswith(_OUR_SCHEMAS):
            yield model
        yield from _models(model)


def _describe(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Copy the descriptions and examples of models to where they are used."""
    _add_example(operation.get("requestBody", {}), schemas)
    for response in operation["responses"].values():
        description = _add_example(response, schemas)
        if response.get("description") == _DEFAULT_DESCRIPTION and description:
            response["description"] = description
    for parameter in operation.get("parameters", []):
        _tidy(parameter)


def _add_example(described: dict[str, Any], schemas: dict[str, Any]) -> str | None:
    """Add the example of the model, if there is one; returns the model's description."""
    media = described.get("content", {}).get(_JSON, {})
    model = schemas.get(media.get("schema", {}).get("$ref", "").removeprefix(_SCHEMAS), {})
    if "examples" in model and "example" not in media and "examples" not in media:
        media["example"] = model["examples"][0]
    description: str | None = model.get("description")
    return description


def _tidy(parameter: dict[str, Any]) -> None:
    """Remove null from the schema of a parameter, which is absent or has a value; move its example out."""
    schema = parameter["schema"]
    choices = [choice for choice in schema.pop("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        schema.update({**choices[0], **schema})
    elif choices:
        schema["anyOf"] = choices
    if "examples" in schema:
        parameter["example"] = schema.pop("examples")[0]


# --- headers and limits ---


def _add_headers(operation: dict[str, Any]) -> None:
    for status, headers in _HEADERS.items():
        if status in operation["responses"]:
            operation["responses"][status]["headers"] = {
                name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()
            }


def _set_query_limits(operation: dict[str, Any], limits: ServerSettings) -> None:
    for parameter in operation.get("parameters", []):
        if (parameter["in"], parameter["name"]) == ("query", "limit"):
            _set_maximum(parameter["schema"], limits, PAGE_SIZE)


def _set_body_limits(schemas: dict[str, Any], limits: ServerSettings) -> None:
    for schema in schemas.values():
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is False and "limit" in properties:
            _set_maximum(properties["limit"], limits, HIT_LIMIT)
        if schema.get("additionalProperties") is False and "messages" in properties:
            properties["messages"]["maxItems"] = min(limits.max_messages, MAX_ITEMS)


def _set_maximum(schema: dict[str, Any], limits: ServerSettings, default: int) -> None:
    number = next((choice for choice in schema.get("anyOf", []) if choice["type"] == "integer"), schema)
    number["maximum"] = limits.max_page_size
    schema["default"] = min(default, limits.max_page_size)


def main() -> None:
    """Print the document: `python -m recollect.server.openapi`. Clients are generated from it."""
    import json

    from .app import create_app
    from .settings import Settings

    print(json.dumps(create_app(Settings()).openapi(), indent=1))


if __name__ == "__main__":
    main()
