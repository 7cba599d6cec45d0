"""Who speaks in a call: the user, the agent and the session, from headers or the API's own field."""

from dataclasses import dataclass

from starlette.datastructures import Headers

from ...errors import InvalidTypeError, InvalidValueError
from ...memory.conversation import check_key, check_owner
from ..problems import Problem

USER, AGENT, SESSION = "X-Recollect-User", "X-Recollect-Agent", "X-Recollect-Session"
_LONGEST = 1000  # characters of a user or an agent


@dataclass(frozen=True)
class Speaker:
    """The user of a call, and the agent and session that it belongs to."""

    user_id: str
    agent_id: str
    session_id: str | None = None


def speaker_of(headers: Headers, user_field: object, default_agent: str) -> Speaker | None:
    """The speaker of a call; `None` if neither a header nor the API's own field names a user.

    A header that cannot be an id is refused: the call would be remembered for a wrong user, or for none. The
    field of the API is checked by the provider, so an unusable one only means that nobody is named.
    """
    agent, session = _header(headers, AGENT), _header(headers, SESSION)
    user = _header(headers, USER) or _usable(user_field)
    return None if user is None else Speaker(user, agent or default_agent, session)


def _header(headers: Headers, name: str) -> str | None:
    """The value of a header as UTF-8, with or without `X-`, or `None` without one."""
    values = [*headers.getlist(name), *headers.getlist(name.removeprefix("X-"))]
    if not values:
        return None
    if len(values) > 1:
        raise _invalid(name, "is sent more than once")
    try:
        value = values[0].encode("latin-1").decode("utf-8").strip()
    except UnicodeDecodeError:
        raise _invalid(name, "must be UTF-8") from None
    if not value or not value.isprintable():
        raise _invalid(name, "must be printable text of one line")
    if len(value) > _LONGEST:
        raise _invalid(name, f"must have at most {_LONGEST} characters")
    return _checked(name, value)


def _checked(name: str, value: str) -> str:
    try:
        return str(check_key(name, value)) if name == SESSION else check_owner(name, value)
    except (InvalidValueError, InvalidTypeError) as error:
        raise Problem("validation_failed", str(error)) from error


def _usable(value: object) -> str | None:
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable() or not value.strip():
        return None
    return value


def _invalid(name: str, message: str) -> Problem:
    errors = [{"field": f"header.{name}", "message": message}]
    return Problem("validation_failed", f"{name} {message}", errors=errors)
