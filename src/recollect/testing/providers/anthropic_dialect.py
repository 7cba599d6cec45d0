"""How Anthropic's API asks for a key and tells of errors."""

from typing import Any

from starlette.datastructures import Headers

from .core import ApiError

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class AnthropicDialect:
    """A key in `x-api-key` or as a bearer, and errors in an object that says of itself that it is one."""

    request_id_header = "request-id"

    def key_of(self, headers: Headers) -> str | None:
        """The key that a request carries."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        return headers.get("x-api-key") or (bearer if scheme.lower() == "bearer" else None)

    def error_body(self, error: ApiError, request_id: str | None = None) -> dict[str, Any]:
        """The body of an answer that refuses; in the middle of a stream, without the request."""
        default = "api_error" if error.status >= 500 else "invalid_request_error"
        kind = error.kind or _TYPES.get(error.status, default)
        body = {"type": "error", "error": {"type": kind, "message": error.message}}
        return body if request_id is None else {**body, "request_id": request_id}

    def wrong_key(self, key: str | None) -> ApiError:
        """What is said to a key that is wrong, or missing."""
        return ApiError(401, "x-api-key header is required" if key is None else "invalid x-api-key")

    def too_long(self, tokens: int, limit: int) -> ApiError:
        """What is said to more tokens than the model takes."""
        return ApiError(400, f"prompt is too long: {tokens} tokens > {limit} maximum")

    def filtered(self) -> ApiError:
        """What is said to contents that the provider will not have."""
        return ApiError(400, "Output blocked by content filtering policy")

    def overloaded(self) -> ApiError:
        """What is said to everybody when there are too many."""
        return ApiError(529, "Overloaded")
