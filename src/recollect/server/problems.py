"""Errors as problem documents (RFC 9457), each with a code that stays the same."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..errors import InvalidTypeError, InvalidValueError

MEDIA_TYPE = "application/problem+json"


class Kind(NamedTuple):
    """What all problems with a code have in common."""

    status: int
    title: str


CODES: dict[str, Kind] = {
    "invalid_json": Kind(400, "The body is not valid JSON"),
    "invalid_request": Kind(400, "The request is not valid HTTP"),
    "unauthenticated": Kind(401, "A valid key is needed"),
    "forbidden": Kind(403, "The key does not allow this"),
    "cross_origin_request": Kind(403, "A page of another origin may not change anything"),
    "not_found": Kind(404, "There is nothing here"),
    "method_not_allowed": Kind(405, "This cannot be done here"),
    "request_timeout": Kind(408, "The request took too long to arrive"),
    "conflict": Kind(409, "What is stored is not what the request takes it for"),
    "conversation_busy": Kind(409, "Another turn of this conversation is running"),
    "conversation_closed": Kind(409, "The conversation is closed"),
    "idempotency_in_progress": Kind(409, "The first request with this Idempotency-Key is still running"),
    "idempotency_key_reused": Kind(409, "This Idempotency-Key belongs to another request"),
    "precondition_failed": Kind(412, "It has been changed since it was read"),
    "body_too_large": Kind(413, "The body is too large"),
    "unsupported_media_type": Kind(415, "The body must be JSON"),
    "misdirected_request": Kind(421, "The request was meant for another host"),
    "validation_failed": Kind(422, "The request is not as it should be"),
    "precondition_required": Kind(428, "An If-Match header is needed"),
    "rate_limited": Kind(429, "Too many requests"),
    "concurrency_limited": Kind(429, "Too many requests at once"),
    "token_budget_exceeded": Kind(429, "The model tokens of today are used up"),
    "internal_error": Kind(500, "Something went wrong on our side"),
    "model_failed": Kind(502, "The model did not give an answer"),
    "not_ready": Kind(503, "The service cannot answer now"),
    "overloaded": Kind(503, "Too many requests are being served"),
    "storage_unavailable": Kind(503, "The database does not answer"),
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
        """Which fields are wrong, and how: `{"field": "body.messages.0.role", "message": "…"}`."""
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        """The HTTP status."""
        return CODES[self.code].status

    def document(self, request_id: str | None = None) -> dict[str, Any]:
        """The problem as JSON tells it."""
        kind = CODES[self.code]
        told: dict[str, Any] = {
            "type": f"urn:recollect:problem:{self.code}",
            "title": kind.title,
            "status": kind.status,
            "detail": self.detail,
            "code": self.code,
        }
        if self.errors:
            told["errors"] = [dict(error) for error in self.errors]
        if request_id is not None:
            told["request_id"] = request_id
        return told


@contextmanager
def refused_input() -> Iterator[None]:
    """Answer an argument that the library refuses with 422 and the library's words.

    Only the checks of arguments raise these errors. Any other `ValueError` or `TypeError` is a fault of ours:
    it is logged, and answered with 500.
    """
    try:
        yield
    except (InvalidValueError, InvalidTypeError) as error:
        raise Problem("validation_failed", str(error)) from error
