"""Errors as problem documents (RFC 9457), each with a stable code."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..errors import InvalidTypeError, InvalidValueError

MEDIA_TYPE = "application/problem+json"


INTERNAL_ERROR = "The service failed unexpectedly. Report the request_id to its operator."
IN_PROGRESS = "The first request with this Idempotency-Key is still running. Retry in a moment."


class Kind(NamedTuple):
    """The status and title of all problems with a code."""

    status: int
    title: str


CODES: dict[str, Kind] = {
    "invalid_json": Kind(400, "The body is not valid JSON"),
    "invalid_request": Kind(400, "The request is not valid HTTP"),
    "unauthenticated": Kind(401, "A valid API key is required"),
    "forbidden": Kind(403, "The API key lacks the required scope"),
    "cross_origin_request": Kind(403, "Cross-origin write refused"),
    "not_found": Kind(404, "Not found"),
    "method_not_allowed": Kind(405, "Method not allowed"),
    "request_timeout": Kind(408, "The request took too long to arrive"),
    "conflict": Kind(409, "The request conflicts with the stored state"),
    "conversation_busy": Kind(409, "Another turn of this conversation is running"),
    "conversation_closed": Kind(409, "The conversation is closed"),
    "idempotency_in_progress": Kind(409, "The first request with this Idempotency-Key is still running"),
    "idempotency_key_reused": Kind(409, "This Idempotency-Key was used for another request"),
    "precondition_failed": Kind(412, "The resource has changed since it was read"),
    "body_too_large": Kind(413, "The body is too large"),
    "unsupported_media_type": Kind(415, "The body must be JSON"),
    "misdirected_request": Kind(421, "The Host header names another host"),
    "validation_failed": Kind(422, "Invalid request"),
    "precondition_required": Kind(428, "An If-Match header is required"),
    "rate_limited": Kind(429, "Too many requests"),
    "concurrency_limited": Kind(429, "Too many concurrent requests"),
    "token_budget_exceeded": Kind(429, "Daily token budget used up"),
    "internal_error": Kind(500, "Internal error"),
    "extra_missing": Kind(501, "The service lacks an optional package"),
    "model_failed": Kind(502, "The model gave no response"),
    "not_ready": Kind(503, "The service is not ready"),
    "overloaded": Kind(503, "The service is overloaded"),
    "storage_unavailable": Kind(503, "The database is unavailable"),
    "storage_full": Kind(507, "The disk of the database is full"),
}


class Problem(Exception):  # noqa: N818 - the name that RFC 9457 gives it
    """Ends a request with a problem document."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = errors
        """The invalid fields: `{"field": "body.messages.0.role", "message": "…"}`."""
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        """The HTTP status."""
        return CODES[self.code].status

    def document(self, request_id: str | None = None) -> dict[str, Any]:
        """The JSON object of the problem."""
        kind = CODES[self.code]
        document: dict[str, Any] = {
            "type": f"urn:recollect:problem:{self.code}",
            "title": kind.title,
            "status": kind.status,
            "detail": self.detail,
            "code": self.code,
        }
        if self.errors:
            document["errors"] = [dict(error) for error in self.errors]
        if request_id is not None:
            document["request_id"] = request_id
        return document


@contextmanager
def translate_input_errors() -> Iterator[None]:
    """Turn an argument error of the library into a 422 with the library's message.

    Only argument checks raise `InvalidValueError` and `InvalidTypeError`. Any other `ValueError` or
    `TypeError` is a bug: it is logged, and answered with 500.
    """
    try:
        yield
    except (InvalidValueError, InvalidTypeError) as error:
        raise Problem("validation_failed", str(error)) from error
