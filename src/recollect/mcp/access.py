"""The caller of a tool and the owner of the memory. A model can choose neither."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from ..memory.conversation import check_owner
from ..server.access.authentication import OPEN_TENANT, Caller
from ..server.problems import Problem

USER_HEADER = "Recollect-User"
AGENT_HEADER = "Recollect-Agent"
DEFAULT_AGENT = "assistant"

_MAX_ID_LENGTH = 1000  # characters
_ENCODING = "must be percent-encoded UTF-8: ASCII, with %XX for every other byte and %25 for %"


@dataclass(frozen=True)
class PinnedOwner:
    """The user and agent that the server was started for. If set, they apply to all calls."""

    user_id: str | None = None
    agent_id: str | None = None

    def __post_init__(self) -> None:
        for name, given in (("--user", self.user_id), ("--agent", self.agent_id)):
            if given is not None:
                check_owner(name, given)


@dataclass(frozen=True)
class Access:
    """The access of a caller to the memory of one agent and one user."""

    caller: Caller
    agent_id: str
    user_id: str


def local_access(pinned: PinnedOwner, tenant: str = OPEN_TENANT) -> Access:
    """The access of a client that started the server itself. It could read the database anyway."""
    if pinned.user_id is None:
        raise ValueError("the user is missing: give --user NAME, or set RECOLLECT_USER")
    caller = Caller(check_owner("--tenant", tenant), "admin", None)
    return Access(caller, pinned.agent_id or DEFAULT_AGENT, pinned.user_id)


def access_of(caller: Caller, headers: Mapping[str, Sequence[str]], pinned: PinnedOwner) -> Access:
    """The access of a request: the pinned owner, or else the one that the headers name.

    A key may name any user of its tenant, as in the HTTP API. The headers belong in the configuration of a
    client, which its model does not write.
    """
    user_id = _choose(USER_HEADER, headers, pinned.user_id)
    if user_id is None:
        raise _invalid_header(USER_HEADER, "is required: it names the user of the memory")
    agent_id = _choose(AGENT_HEADER, headers, pinned.agent_id)
    return Access(caller, agent_id or DEFAULT_AGENT, user_id)


def _choose(header: str, headers: Mapping[str, Sequence[str]], pinned: str | None) -> str | None:
    given = _read(header, headers.get(header.lower(), ()))
    if pinned is not None and given not in (None, pinned):
        raise Problem("forbidden", f"This server was started for another owner than {header} names.")
    return given if pinned is None else pinned


def _read(header: str, values: Sequence[str]) -> str | None:
    """The value of a header; `None` if absent. A repeated header is refused: one may be injected."""
    if not values:
        return None
    if len(values) > 1:
        raise _invalid_header(header, "must be sent once")
    if not values[0].isascii():
        raise _invalid_header(header, _ENCODING)
    try:
        given = check_owner(header, unquote(values[0], errors="strict"))
    except ValueError as error:
        raise _invalid_header(header, _ENCODING if values[0] else "must not be empty") from error
    if len(given) > _MAX_ID_LENGTH:
        raise _invalid_header(header, f"must not be longer than {_MAX_ID_LENGTH} characters")
    return given


def _invalid_header(header: str, message: str) -> Problem:
    field = f"header.{header}"
    return Problem("validation_failed", f"{field}: {message}", errors=[{"field": field, "message": message}])
