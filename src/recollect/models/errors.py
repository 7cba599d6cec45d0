"""Errors of a provider translated to ours: retry later, never retry, send less, or use another format.

The messages name statuses, codes and types. The provider's own words may quote the user or an API key, so
they stay in the cause.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ..errors import ExtractionError, ModelRefusedError, ModelUnavailableError

_RETRYABLE = (408, 409, 425, 429)
_INVALID = (400, 422)
_TOO_LONG = re.compile(
    r"context[ _](length|window|size|limit)|(prompt|input) is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_CODE = re.compile(r"[a-z][a-z_]{2,39}")


class TooLongError(Exception):
    """The input is longer than the model accepts."""


class UnsupportedFormatError(Exception):
    """The endpoint does not support the requested response format."""


def translate_error(error: Exception, format_words: re.Pattern[str] | None = None) -> Exception:
    """Translate an error of the client.

    `format_words` matches the words by which the endpoint rejects a response format.
    """
    status = getattr(error, "status_code", None)
    if status is None:
        return _error_without_status(error)
    if _is_too_long(error, status):
        return TooLongError()
    if format_words is not None and _rejects_format(error, status, format_words):
        return UnsupportedFormatError()
    headers = getattr(getattr(error, "response", None), "headers", {})
    return error_of_status(status, _code_of(error), retry_after_seconds(headers))


def error_of_status(status: int, code: str = "", retry_after: float | None = None) -> ExtractionError:
    """`ModelUnavailableError` for a status that may pass, `ModelRefusedError` for one that will not."""
    reason = f"the model's endpoint answered {status}{f' ({code})' if code else ''}"
    if status not in _RETRYABLE and status < 500:
        return ModelRefusedError(reason)
    return model_unavailable(reason, retry_after)


def error_in_body(error: Any) -> ExtractionError:
    """Translate an error object that an endpoint sends with status 200."""
    code = error.get("code") if isinstance(error, dict) else None
    return error_of_status(code if isinstance(code, int) and 400 <= code < 600 else 500)


def model_unavailable(reason: str, retry_after: float | None = None) -> ModelUnavailableError:
    """A `ModelUnavailableError` with the seconds that the provider asks us to wait."""
    error = ModelUnavailableError(reason)
    error.retry_after = retry_after
    return error


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Parse `Retry-After`, which is a number of seconds or a date; `None` if it is missing or neither."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str) -> float | None:
    try:
        until = parsedate_to_datetime(date)
    except ValueError:
        return None
    return max((until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _error_without_status(error: Exception) -> ExtractionError:
    name = type(error).__name__
    if _is_connection_error(error):
        return model_unavailable(f"no connection to the model ({name})")
    return ModelRefusedError(f"the request could not be sent to the model ({name}): check the API key")


def _is_connection_error(error: Exception) -> bool:
    import httpx2

    names = {kind.__name__ for kind in type(error).__mro__}  # both SDKs use the same class name
    return isinstance(error, httpx2.HTTPError) or "APIConnectionError" in names


def _is_too_long(error: Exception, status: int) -> bool:
    if status == 413 or getattr(error, "code", None) == "context_length_exceeded":
        return True
    return status in _INVALID and _TOO_LONG.search(str(error)) is not None


def _rejects_format(error: Exception, status: int, format_words: re.Pattern[str]) -> bool:
    words = f"{getattr(error, 'param', None)} {error}"
    return status in _INVALID and format_words.search(words) is not None


def _code_of(error: Exception) -> str:
    """The provider's code or type of the error, if it is an identifier and not free text."""
    code = getattr(error, "code", None) or getattr(error, "type", None)
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""
