"""The OpenAPI document, made complete: who may call, what can go wrong, and an example for everything."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from .problems import MEDIA_TYPE
from .schemas.base import HIT_LIMIT, MAX_ITEMS, PAGE_SIZE
from .schemas.chat import EVENTS
from .schemas.problems import ProblemDocument, add_problem, problems
from .settings import ServerSettings

_DESCRIPTION = """The memory of AI agents: it records conversations, learns from them, answers what it knows
about a user and why, runs agents that remember, and lets a user take their data and leave.

Lists are read page by page: send the `next_cursor` of a page as `cursor`. A POST that creates something may
carry an `Idempotency-Key`. Errors are problem documents (RFC 9457) with a `code` that stays the same."""

_TAGS = {
    "conversations": "What was said: recorded, read, searched, branched, erased.",
    "memories": "What an agent knows about a user.",
    "entries": "One thing each that is known, with its evidence and its history.",
    "runs": "How far the learning has come, and what went wrong.",
    "chat": "Agents that remember.",
    "users": "The users, and what is stored about one: export and erasure.",
    "access": "Who calls, and who did what.",
    "operations": "Whether the service works.",
}
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "rk_…",
    "description": "A key of `recollect keys create`. On loopback with no key made, none is needed.",
}
_READING = {"get", "head"}
_SECURITY: list[dict[str, list[str]]] = [{"key": []}, {}]
_SCHEMAS = "#/components/schemas/"
_JSON = "application/json"
_UNDESCRIBED = "Successful Response"  # what FastAPI says of any
_OUR_SCHEMAS = "recollect.server.schemas"
_HEADERS = {
    "401": {"WWW-Authenticate": "How to show a key."},
    "405": {"Allow": "What can be done here."},
    "429": {"Retry-After": "Seconds to wait."},
    "503": {"Retry-After": "Seconds to wait."},
}


def describe_api(app: FastAPI) -> None:
    """Have the application tell a complete document; it is made when it is first asked for."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=_DESCRIPTION,
        routes=app.routes,
        servers=[{"url": "/", "description": "The service that this document was read from."}],
        tags=[{"name": name, "description": told} for name, told in _TAGS.items()],
        license_info={"name": "MIT", "identifier": "MIT"},
    )
    _add_components(document)
    for method, path, operation in _operations(document):
        if path.startswith("/v1/"):
            _guard(operation, changes=method not in _READING)
        _describe(operation, document["components"]["schemas"])
        _add_headers(operation)
        _tell_limits(operation, app.state.settings.server)
    _tell_limits_of_bodies(document["components"]["schemas"], app.state.settings.server)
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
    asked: list[tuple[type[BaseModel], JsonSchemaMode]] = [(model, "validation") for model in models]
    made = models_json_schema(asked, ref_template=_SCHEMAS + "{model}")[1]["$defs"]
    made["Problem"] = made.pop("ProblemDocument")
    for name, schema in made.items():
        schemas.setdefault(name, schema)
    _restore_examples(schemas)
    components["securitySchemes"] = {"key": _KEY}


def _guard(operation: dict[str, Any], *, changes: bool) -> None:
    """Who may call it, and what any route here may answer."""
    operation["security"] = _SECURITY
    for status, told in problems("read").items():
        known = operation["responses"].get(str(status))
        if known is None or MEDIA_TYPE not in known.get("content", {}):
            operation["responses"][str(status)] = told
    if changes:
        add_problem(operation["responses"]["403"], "cross_origin_request")


# --- examples ---


def _restore_examples(schemas: dict[str, Any]) -> None:
    """Put the examples of models back as they are: FastAPI leaves out what is null in them."""
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
    """What models say about themselves, and their examples, where they are used."""
    _add_example(operation.get("requestBody", {}), schemas)
    for response in operation["responses"].values():
        told = _add_example(response, schemas)
        if response.get("description") == _UNDESCRIBED and told:
            response["description"] = told
    for parameter in operation.get("parameters", []):
        _tidy(parameter)


def _add_example(described: dict[str, Any], schemas: dict[str, Any]) -> str | None:
    """Returns what the model says about itself, if there is one."""
    media = described.get("content", {}).get(_JSON, {})
    model = schemas.get(media.get("schema", {}).get("$ref", "").removeprefix(_SCHEMAS), {})
    if "examples" in model and "example" not in media and "examples" not in media:
        media["example"] = model["examples"][0]
    told: str | None = model.get("description")
    return told


def _tidy(parameter: dict[str, Any]) -> None:
    """A parameter that is not given is absent, and never null; its example stands beside its schema."""
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
                name: {"description": told, "schema": {"type": "string"}} for name, told in headers.items()
            }


def _tell_limits(operation: dict[str, Any], limits: ServerSettings) -> None:
    for parameter in operation.get("parameters", []):
        if (parameter["in"], parameter["name"]) == ("query", "limit"):
            _tell_most(parameter["schema"], limits, PAGE_SIZE)


def _tell_limits_of_bodies(schemas: dict[str, Any], limits: ServerSettings) -> None:
    for schema in schemas.values():
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is False and "limit" in properties:
            _tell_most(properties["limit"], limits, HIT_LIMIT)
        if schema.get("additionalProperties") is False and "messages" in properties:
            properties["messages"]["maxItems"] = min(limits.max_messages, MAX_ITEMS)


def _tell_most(schema: dict[str, Any], limits: ServerSettings, default: int) -> None:
    number = next((choice for choice in schema.get("anyOf", []) if choice["type"] == "integer"), schema)
    number["maximum"] = limits.max_page_size
    schema["default"] = min(default, limits.max_page_size)
