"""Exception handlers: every error of a request becomes a problem document."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ..errors import (
    ConflictError,
    DiskFullError,
    ExtractionError,
    FileReplacedError,
    ImportFormatError,
    InvalidItemError,
    MissingTablesError,
    RecollectError,
    RunLockTimeoutError,
    SchemaMismatchError,
    StorageError,
)
from ..providers.errors import ChatFailedError, TurnRunningError, UnknownBranchError
from .problems import CODES, IN_PROGRESS, INTERNAL_ERROR, MEDIA_TYPE, Problem
from .telemetry.logs import current_request_id, log_unexpected

_MAX_MESSAGE = 300  # characters
_RETRY_AFTER = {"Retry-After": "1"}
# The first match counts. Without a detail, the error's own message is sent.
_BY_ERROR: tuple[tuple[type[RecollectError], str, str | None], ...] = (
    (UnknownBranchError, "not_found", None),
    (
        RunLockTimeoutError,
        "conversation_busy",
        "Another turn of this conversation is running. Retry later.",
    ),
    (TurnRunningError, "idempotency_in_progress", IN_PROGRESS),
    (ConflictError, "conflict", None),
    (InvalidItemError, "validation_failed", None),
    (ImportFormatError, "validation_failed", None),
    (ExtractionError, "model_failed", "The model returned no usable response."),
    (MissingTablesError, "not_ready", "The database has no tables: run `recollect migrate`."),
    (
        SchemaMismatchError,
        "not_ready",
        "The database schema has another version than the service.",
    ),
    (
        FileReplacedError,
        "storage_unavailable",
        "The database file was replaced or deleted while the service was running. The operator must restore"
        " it and restart the service.",
    ),
    (DiskFullError, "storage_full", "The disk of the database is full. Nothing was stored."),
    (
        StorageError,
        "storage_unavailable",
        "The database is unavailable. Retry later.",
    ),
)
_BY_TURN_CODE = {"storage_failed": "storage_unavailable", "interrupted": "not_ready"}
_RETRYABLE = {"idempotency_in_progress", "not_ready", "storage_full", "storage_unavailable"}
# Replacements for pydantic's messages that would repeat the input.
_MESSAGES = {"union_tag_invalid": "{discriminator} must be one of {expected_tags}"}
_BY_STATUS = {kind.status: code for code, kind in reversed(CODES.items())} | {409: "conflict"}


def problem_response(problem: Problem) -> Response:
    """The response that carries a problem document."""
    body = json.dumps(problem.document(current_request_id()))
    return Response(body, problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def problem_from(error: RecollectError) -> Problem:
    """The problem that a library error becomes."""
    if isinstance(error, ChatFailedError):
        return _problem(turn_code(error.code), str(error))
    for kind, code, detail in _BY_ERROR:
        if isinstance(error, kind):
            return _problem(code, str(error) if detail is None else detail)
    return Problem("internal_error", INTERNAL_ERROR)


def turn_code(code: str) -> str:
    """The problem code of a failed turn, the same in a stream and in a problem document."""
    return _BY_TURN_CODE.get(code, code if code in CODES else "model_failed")


def _problem(code: str, detail: str) -> Problem:
    return Problem(code, detail, headers=_RETRY_AFTER if code in _RETRYABLE else None)


def status_of(error: Exception) -> int:
    """The HTTP status of the response to an error raised in a route."""
    if isinstance(error, Problem):
        return error.status
    if isinstance(error, RecollectError):
        return problem_from(error).status
    if isinstance(error, RequestValidationError):
        return _validation_problem(error.errors()).status
    return error.status_code if isinstance(error, HTTPException) else 500


def error_response(error: RecollectError) -> Response:
    """The response to a library error. Errors with a 5xx status are logged."""
    problem = problem_from(error)
    if problem.status >= 500:
        log_unexpected(error)
    return problem_response(problem)


def install_error_handlers(app: FastAPI) -> None:
    """Answer every error of an application with a problem document."""
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(RecollectError, _on_library_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return problem_response(problem)


async def _on_library_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RecollectError)
    return error_response(error)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _BY_STATUS.get(error.status_code, "internal_error" if error.status_code >= 500 else "conflict")
    headers = await _allowed(request) if code == "method_not_allowed" else error.headers
    return problem_response(Problem(code, f"{CODES[code].title}.", headers=headers))


async def _allowed(request: Request) -> dict[str, str]:
    """The `Allow` header of a path. The router itself names only the methods of the first matching route."""
    path = getattr(request.scope.get("route"), "path_format", None)
    document = await asyncio.to_thread(request.app.openapi)  # the first call builds it
    documented = document["paths"].get(path, {})
    return {"Allow": ", ".join(sorted(method.upper() for method in documented))}


async def _on_validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(_validation_problem(error.errors()))


def _validation_problem(found: Sequence[Any]) -> Problem:
    """A problem that names the invalid fields without their values."""
    if any(each["type"] == "json_invalid" for each in found):
        return Problem("invalid_json", "The body is not valid JSON.")
    errors = [{"field": _field(each["loc"]), "message": _sendable(_message(each))} for each in found[:20]]
    first = errors[0]
    return Problem("validation_failed", f"{first['field']}: {first['message']}", errors=errors)


def _message(error: Any) -> str:
    message: str = _MESSAGES.get(error["type"], "").format_map(error.get("ctx", {})) or error["msg"]
    return message


def _field(place: Sequence[str | int]) -> str:
    return _sendable(".".join(map(str, place)))


def _sendable(text: str) -> str:
    """A text as valid UTF-8 of limited length: it may contain names from the request."""
    return text[:_MAX_MESSAGE].encode("utf-8", "replace").decode()
