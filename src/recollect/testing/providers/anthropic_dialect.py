"""Authentication and error format of Anthropic's API."""

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
    """The key is in `x-api-key` or a bearer token. Errors are objects of type `error`."""

    request_id_header = "request-id"

    def key_of(self, headers: Headers) -> str | None:
        """Return the key of a request."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        return headers.get("x-api-key") or (bearer if scheme.lower() == "bearer" else None)

    def error_body(self, error: ApiError, request_id: str | None = None) -> dict[str, Any]:
        """Return the body of an error response; inside a stream, without the request id."""
        default = "api_error" if error.status >= 500 else "invalid_request_error"
        kind = error.kind or _TYPES.get(error.status, default)
        body = {"type": "error", "error": {"type": kind, "message": error.message}}
        return body if request_id is None else {**body, "request_id": request_id}

    def wrong_key(self, key: str | None) -> ApiError:
        """Return the error for a wrong or missing key."""
        return ApiError(401, "x-api-key header is required" if key is None else "invalid x-api-key")

    def too_long(self, tokens: int, limit: int) -> ApiError:
        """Return the error for a request that exceeds the context window."""
        return ApiError(400, f"prompt is too long: {tokens} tokens > {limit} maximum")

    def filtered(self) -> ApiError:
        """Return the error for content that the provider rejects."""
        return ApiError(400, "Output blocked by content filtering policy")

    def overloaded(self) -> ApiError:
        """Return the error for an overloaded provider."""
        return ApiError(529, "Overloaded")
