"""Problem documents in the OpenAPI description of routes."""

from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ..problems import CODES, MEDIA_TYPE, Problem

Responses: TypeAlias = dict[int | str, dict[str, Any]]

_DETAILS = {
    "not_found": "There is no conversation with this id.",
    "conflict": "there is no failed run with this run_id",
    "validation_failed": "body.messages.0.role: Input should be 'user', 'assistant' or 'system'",
    "forbidden": "This needs a key with the scope write.",
}
_ERRORS = {
    "validation_failed": [
        {"field": "body.messages.0.role", "message": "Input should be 'user', 'assistant' or 'system'"}
    ]
}


_ALWAYS = (
    *("invalid_request", "unauthenticated", "forbidden", "misdirected_request", "validation_failed"),
    *("rate_limited", "concurrency_limited", "internal_error", "overloaded"),
)
_STORED = ("storage_unavailable", "storage_full", "not_ready")
_SENT = ("invalid_json", "request_timeout", "body_too_large", "unsupported_media_type")
_MADE = ("conflict", "idempotency_in_progress", "idempotency_key_reused")
# The codes that all routes of a kind may return.
_KINDS: dict[str, tuple[str, ...]] = {
    "read": (*_ALWAYS, *_STORED),
    "send": (*_ALWAYS, *_STORED, *_SENT),
    "create": (*_ALWAYS, *_STORED, *_SENT, *_MADE),
    "chat": (
        *(*_ALWAYS, *_STORED, *_SENT, *_MADE),
        *("not_found", "conversation_busy", "conversation_closed", "token_budget_exceeded", "model_failed"),
    ),
}


class FieldError(BaseModel):
    """One invalid field of a request."""

    field: str = Field(description="The place of the field, such as `body.messages.0.role`.")
    message: str


class ProblemDocument(BaseModel):
    """An error (RFC 9457). `code` is stable; `detail` is for people and never contains stored contents."""

    model_config = ConfigDict(title="Problem")

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="The stable code, for programs.", json_schema_extra={"enum": [*CODES]})
    errors: list[FieldError] | None = Field(default=None, description="The invalid fields, if any.")
    request_id: str | None = Field(default=None, description="The id to quote when you report the problem.")


def problems(kind: str, *codes: str) -> Responses:
    """The problem responses of a route of a kind (`read`, `send`, `create` or `chat`), for OpenAPI.

    `codes` are the additional codes of the route.
    """
    found: Responses = {}
    for code in (*_KINDS[kind], *codes):
        add_problem(found.setdefault(CODES[code].status, _response()), code)
    return found


def add_problem(response: dict[str, Any], code: str) -> None:
    """Add a problem to the described response with its status."""
    named = response["content"][MEDIA_TYPE]["examples"]
    named[code] = _example(code)
    response["description"] = "; ".join(f"{CODES[each].title} (`{each}`)" for each in named)


def _response() -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": "", "content": {MEDIA_TYPE: {"schema": schema, "examples": {}}}}


def _example(code: str) -> dict[str, Any]:
    kind = CODES[code]
    detail = _DETAILS.get(code, kind.title)
    problem = Problem(code, detail, errors=_ERRORS.get(code, ()))
    return {"summary": kind.title, "value": problem.document("01K9XQ4D7B")}
