"""Whatever goes wrong in a request, as a problem document."""

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
    ImportFormatError,
    InvalidItemError,
    MissingTablesError,
    RecollectError,
    RunLockTimeoutError,
    SchemaMismatchError,
    StorageError,
)
from ..providers.errors import ChatFailedError, TurnRunningError, UnknownBranchError
from .problems import CODES, MEDIA_TYPE, Problem
from .telemetry.logs import current_request_id, log_fault

_LONGEST_MESSAGE = 300  # characters
_RETRY_AFTER = {"Retry-After": "1"}
# The first that fits counts.
_OF_ERRORS: tuple[tuple[type[RecollectError], str, str | None], ...] = (
    (UnknownBranchError, "not_found", None),
    (RunLockTimeoutError, "conversation_busy", "another turn of this conversation is still running"),
    (TurnRunningError, "idempotency_in_progress", "send the request again a little later"),
    (ConflictError, "conflict", None),
    (InvalidItemError, "validation_failed", None),
    (ImportFormatError, "validation_failed", None),
    (ExtractionError, "model_failed", "the model did not give an answer that can be used"),
    (MissingTablesError, "not_ready", "the database has no tables yet: run `recollect migrate`"),
    (SchemaMismatchError, "not_ready", "the tables of the database are of another version"),
    (DiskFullError, "storage_full", "the disk of the database is full; nothing of the request was stored"),
    (StorageError, "storage_unavailable", "the database does not answer now; nothing is lost, try again"),
)
_OF_TURNS = {"storage_failed": "storage_unavailable", "interrupted": "not_ready"}
_AGAIN_SOON = {"idempotency_in_progress", "not_ready", "storage_full", "storage_unavailable"}
# Where the words of pydantic repeat what was sent, these stand in their place.
_WORDS = {"union_tag_invalid": "{discriminator} must be one of {expected_tags}"}
_OF_STATUS = {kind.status: code for code, kind in reversed(CODES.items())} | {409: "conflict"}


def answer_problem(problem: Problem) -> Response:
    """The answer that tells a problem."""
    told = json.dumps(problem.document(current_request_id()))
    return Response(told, problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def problem_of(error: RecollectError) -> Problem:
    """The problem that an error of the library is to a caller."""
    if isinstance(error, ChatFailedError):
        return _problem(turn_code(error.code), str(error))
    for kind, code, detail in _OF_ERRORS:
        if isinstance(error, kind):
            return _problem(code, str(error) if detail is None else detail)
    return Problem("internal_error", "the request could not be served")


def turn_code(code: str) -> str:
    """The code by which callers know why a turn has no answer: the same in a stream and in a problem."""
    return _OF_TURNS.get(code, code if code in CODES else "model_failed")


def _problem(code: str, detail: str) -> Problem:
    return Problem(code, detail, headers=_RETRY_AFTER if code in _AGAIN_SOON else None)


def status_of(error: Exception) -> int:
    """The status of the answer that an error in a route becomes."""
    if isinstance(error, Problem):
        return error.status
    if isinstance(error, RecollectError):
        return problem_of(error).status
    if isinstance(error, RequestValidationError):
        return _invalid(error.errors()).status
    return error.status_code if isinstance(error, HTTPException) else 500


def answer_error(error: RecollectError) -> Response:
    """The answer that tells of an error of the library; one of ours is logged."""
    problem = problem_of(error)
    if problem.status >= 500:
        log_fault(error)
    return answer_problem(problem)


def install_fault_handlers(app: FastAPI) -> None:
    """Have every error answered as a problem document."""
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(RecollectError, _on_library_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return answer_problem(problem)


async def _on_library_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RecollectError)
    return answer_error(error)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _OF_STATUS.get(error.status_code, "internal_error" if error.status_code >= 500 else "conflict")
    headers = _allowed(request) if code == "method_not_allowed" else error.headers
    return answer_problem(Problem(code, CODES[code].title, headers=headers))


def _allowed(request: Request) -> dict[str, str]:
    """What can be done at a path: the router tells only what the first route there can."""
    path = getattr(request.scope.get("route"), "path_format", None)
    documented = request.app.openapi()["paths"].get(path, {})
    return {"Allow": ", ".join(sorted(method.upper() for method in documented))}


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer_problem(_invalid(error.errors()))


def _invalid(found: Sequence[Any]) -> Problem:
    """Which fields are wrong; their values are not repeated."""
    if any(each["type"] == "json_invalid" for each in found):
        return Problem("invalid_json", "the body is not valid JSON")
    errors = [{"field": _field(each["loc"]), "message": _told(_words(each))} for each in found[:20]]
    first = errors[0]
    return Problem("validation_failed", f"{first['field']}: {first['message']}", errors=errors)


def _words(error: Any) -> str:
    words: str = _WORDS.get(error["type"], "").format_map(error.get("ctx", {})) or error["msg"]
    return words


def _field(place: Sequence[str | int]) -> str:
    return _told(".".join(map(str, place)))


def _told(text: str) -> str:
    """A text that can be sent whatever a caller has put into it."""
    return text[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
