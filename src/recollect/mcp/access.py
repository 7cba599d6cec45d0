"""Whose memory a call is about, and who calls. No model decides either."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from ..memory.conversation import check_owner
from ..server.access.authentication import OPEN_TENANT, Caller
from ..server.problems import Problem

USER_HEADER = "Recollect-User"
AGENT_HEADER = "Recollect-Agent"
DEFAULT_AGENT = "assistant"

_LONGEST_ID = 1000  # characters
_PLAIN = "write it in ASCII, with %XX for every other byte of its UTF-8, and %25 for %"


@dataclass(frozen=True)
class Pinned:
    """Whose memory it is, as far as whoever started the server has said: it holds for all that call."""

    user_id: str | None = None
    agent_id: str | None = None

    def __post_init__(self) -> None:
        for name, given in (("--user", self.user_id), ("--agent", self.agent_id)):
            if given is not None:
                check_owner(name, given)


@dataclass(frozen=True)
class Access:
    """One user's memory with one agent, in the hands of a caller."""

    caller: Caller
    agent_id: str
    user_id: str


def local_access(pinned: Pinned, tenant: str = OPEN_TENANT) -> Access:
    """The access of the client that has started the server itself, and so may read the database anyway."""
    if pinned.user_id is None:
        raise ValueError("say whose memory it is: --user NAME, or RECOLLECT_USER in the environment")
    caller = Caller(check_owner("--tenant", tenant), "admin", None)
    return Access(caller, pinned.agent_id or DEFAULT_AGENT, pinned.user_id)


def access_of(caller: Caller, headers: Mapping[str, Sequence[str]], pinned: Pinned) -> Access:
    """The access of a request: what the server was started with holds, and the headers say the rest.

    Whoever has a key may name any user of its tenant, as in the rest of the service. The headers are for the
    configuration of a client, which its model does not write.
    """
    user_id = _settled(USER_HEADER, headers, pinned.user_id)
    if user_id is None:
        raise _wrong(USER_HEADER, "say whose memory it is")
    agent_id = _settled(AGENT_HEADER, headers, pinned.agent_id)
    return Access(caller, agent_id or DEFAULT_AGENT, user_id)


def _settled(header: str, headers: Mapping[str, Sequence[str]], pinned: str | None) -> str | None:
    given = _read(header, headers.get(header.lower(), ()))
    if pinned is not None and given not in (None, pinned):
        raise Problem("forbidden", f"this server was started for another than {header} names")
    return given if pinned is None else pinned


def _read(header: str, values: Sequence[str]) -> str | None:
    """The one value of a header. Of two, one was written by somebody else."""
    if not values:
        return None
    if len(values) > 1:
        raise _wrong(header, "send it once")
    if not values[0].isascii():
        raise _wrong(header, _PLAIN)
    try:
        given = check_owner(header, unquote(values[0], errors="strict"))
    except ValueError as error:
        raise _wrong(header, _PLAIN if values[0] else "must not be empty") from error
    if len(given) > _LONGEST_ID:
        raise _wrong(header, f"must not be longer than {_LONGEST_ID} characters")
    return given


def _wrong(header: str, message: str) -> Problem:
    errors = [{"field": f"header.{header}", "message": message}]
    return Problem(
        "validation_failed", f"the header {header} is not as it should be: {message}", errors=errors
    )
