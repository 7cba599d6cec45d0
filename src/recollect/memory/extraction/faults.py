"""What went wrong when a model was asked, as one of our errors: later, never, or in another form.

Messages name statuses, codes and types. What a provider says in words may quote its user, or a key: that
stays in the cause.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ...errors import ExtractionError, ModelRefusedError, ModelUnavailableError

_LATER = (408, 409, 425, 429)
_TOO_LONG = re.compile(
    r"context[ _](length|window|size|limit)|(prompt|input) is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_CODE = re.compile(r"[a-z][a-z_]{2,39}")


class TooLongError(Exception):
    """The model does not take so much at once."""


class UnknownFormError(Exception):
    """The endpoint does not know how it was asked to form its answer."""


def fault_of(error: Exception, form_words: re.Pattern[str]) -> Exception:
    """What an error of the client means; `form_words` are those by which an endpoint refuses a form."""
    status = getattr(error, "status_code", None)
    if status is None:
        return _fault_without_status(error)
    if _is_too_long(error, status):
        return TooLongError()
    if status in (400, 422) and form_words.search(f"{getattr(error, 'param', None)} {error}"):
        return UnknownFormError()
    headers = getattr(getattr(error, "response", None), "headers", {})
    return fault_of_status(status, _code_of(error), seconds_to_wait(headers))


def fault_of_status(status: int, told: str = "", retry_after: float | None = None) -> ExtractionError:
    """What a status means: asking later may help, or nothing will."""
    reason = f"the model's endpoint answered {status}{told}"
    if status not in _LATER and status < 500:
        return ModelRefusedError(reason)
    return unavailable(reason, retry_after)


def unavailable(reason: str, retry_after: float | None = None) -> ModelUnavailableError:
    """The error of a model that did not answer, with the seconds that its provider asks us to wait."""
    error = ModelUnavailableError(reason)
    error.retry_after = retry_after
    return error


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """What a provider asks for by `Retry-After`, in seconds or as a date."""
    given = headers.get("retry-after", "")
    try:
        seconds = float(given)
    except ValueError:
        return _seconds_until(given)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str) -> float | None:
    try:
        until = parsedate_to_datetime(date)
    except ValueError:
        return None
    return max((until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _fault_without_status(error: Exception) -> ExtractionError:
    name = type(error).__name__
    if _is_of_connection(error):
        return unavailable(f"there is no connection to the model ({name})")
    return ModelRefusedError(f"the model cannot be asked ({name}): is there a key for it?")


def _is_of_connection(error: Exception) -> bool:
    import httpx2

    named = {kind.__name__ for kind in type(error).__mro__}  # the same names in both clients
    return isinstance(error, httpx2.HTTPError) or "APIConnectionError" in named


def _is_too_long(error: Exception, status: int) -> bool:
    if status == 413 or getattr(error, "code", None) == "context_length_exceeded":
        return True
    return status in (400, 422) and _TOO_LONG.search(str(error)) is not None


def _code_of(error: Exception) -> str:
    """The provider's code or type of the error, if it is a word of theirs."""
    given = getattr(error, "code", None) or getattr(error, "type", None)
    is_word = isinstance(given, str) and _CODE.fullmatch(given)
    return f" ({given})" if is_word else ""
