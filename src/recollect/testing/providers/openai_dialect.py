"""How OpenAI's APIs ask for a key and tell of errors."""

from typing import Any

from starlette.datastructures import Headers

from .core import ApiError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_exceeded",
}


class OpenAIDialect:
    """A bearer key, and errors with a message, a type, a parameter and a code."""

    def key_of(self, headers: Headers) -> str | None:
        """The key that a request carries."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return key if scheme.lower() == "bearer" else None

    def error_body(self, error: ApiError) -> dict[str, Any]:
        """The body of an answer that refuses."""
        kind = "server_error" if error.status >= 500 else _TYPES.get(error.status, "invalid_request_error")
        return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}
