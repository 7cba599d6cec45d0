"""Authentication and error format of OpenAI's APIs."""

from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from .core import ApiError

_TYPES = {403: "permission_error", 429: "requests"}
_TOO_LONG = "This model's maximum context length is {limit} tokens. However, you sent {tokens} tokens."


@dataclass(frozen=True)
class OpenAIDialect:
    """The key is a bearer token. Errors have a message, a type, a parameter and a code."""

    input_name: str | None = None
    """The parameter with the input of the model."""
    too_long_message: str = _TOO_LONG
    too_long_code: str | None = "context_length_exceeded"
    request_id_header: str = "x-request-id"

    def key_of(self, headers: Headers) -> str | None:
        """Return the key of a request."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return key if scheme.lower() == "bearer" else None

    def error_body(self, error: ApiError, request_id: str | None = None) -> dict[str, Any]:  # noqa: ARG002
        """Return the body of an error response. The request id is in the header only."""
        kind = "server_error" if error.status >= 500 else _TYPES.get(error.status, "invalid_request_error")
        return {
            "error": {
                "message": error.message,
                "type": error.kind or kind,
                "param": error.param,
                "code": error.code,
            }
        }

    def wrong_key(self, key: str | None) -> ApiError:
        """Return the error for a wrong or missing key."""
        if key is None:
            return ApiError(401, "You didn't provide an API key.")
        return ApiError(401, "Incorrect API key provided.", code="invalid_api_key")

    def too_long(self, tokens: int, limit: int) -> ApiError:
        """Return the error for a request that exceeds the context window."""
        message = self.too_long_message.format(tokens=tokens, limit=limit)
        return ApiError(400, message, self.input_name, self.too_long_code)

    def filtered(self) -> ApiError:
        """Return the error for a prompt that the provider rejects."""
        return ApiError(400, "Invalid prompt: it was flagged by our usage policy.", code="invalid_prompt")

    def overloaded(self) -> ApiError:
        """Return the error for an overloaded provider."""
        return ApiError(503, "The engine is currently overloaded, please try again later.")
