"""How a turn can fail, and what an error of a run means to whoever asked.

ChatFailedError        there is no answer; its code says why, and its message repeats nothing of a provider's
ConversationBusyError  another turn of the conversation is still running (also RunLockTimeoutError)
TurnRunningError       this very turn is still running (also ConflictError)
TurnLostError          another has ended the turn, or erased it, while it ran (also ConflictError)
"""

from collections.abc import Sequence
from typing import Literal

from ..errors import (
    ConflictError,
    DiskFullError,
    InvalidTypeError,
    InvalidValueError,
    RecollectError,
    RunLockTimeoutError,
    StorageError,
)

FailureCode = Literal[
    "model_unavailable",
    "model_refused",
    "model_failed",
    "max_turns",
    "interrupted",
    "storage_failed",
    "storage_full",
]

DETAILS: dict[str, str] = {
    "model_unavailable": "the model cannot be reached, or takes too long; asking again later may help",
    "model_refused": "the model will not answer this",
    "model_failed": "the model or one of its tools failed, and there is no answer",
    "max_turns": "the agent has taken more steps than it may, without an answer",
    "interrupted": "the turn was interrupted before there was an answer",
    "storage_failed": "the database did not answer in the middle of the turn",
    "storage_full": "the disk of the database is full",
}
_LATER = (408, 409, 425, 429)
_REFUSALS = {
    "ModelRefusedError",
    "ModelRefusalError",
    "InputGuardrailTripwireTriggered",
    "OutputGuardrailTripwireTriggered",
    "ToolInputGuardrailTripwireTriggered",
    "ToolOutputGuardrailTripwireTriggered",
}
_NO_CONNECTION = {
    "APIConnectionError",
    "ModelTimeoutError",
    "ModelUnavailableError",
    "TransportError",
    "TimeoutException",
}


class ChatFailedError(RecollectError):
    """A turn has no answer; the message of the user stays, and the next turn works as any other."""

    def __init__(self, code: str) -> None:
        super().__init__(DETAILS.get(code, DETAILS["model_failed"]))
        self.code = code
        """Why: `model_unavailable`, `model_refused`, `model_failed`, `max_turns`, `interrupted`, …"""


class ConversationBusyError(RunLockTimeoutError):
    """Another turn of the conversation was still running when the time to wait was over."""


class TurnRunningError(ConflictError):
    """The turn that is asked for a second time is still running; its answer will be in the conversation."""

    def __init__(self) -> None:
        super().__init__("this turn is still running")


class TurnLostError(ConflictError):
    """The turn was taken for interrupted, or its conversation was erased: it may write nothing any more."""

    def __init__(self) -> None:
        super().__init__("the turn was taken for interrupted")


class UnknownBranchError(RecollectError, LookupError):
    """There is no branch of this name."""

    def __init__(self) -> None:
        super().__init__("there is no branch of this name")


class UnknownAgentError(RecollectError, LookupError):
    """There is no agent of this name."""

    def __init__(self, name: object, known: Sequence[str]) -> None:
        super().__init__(f"there is no agent {str(name)[:64]!r}; there are {', '.join(known)}")
        self.name = name


def code_of(error: BaseException) -> FailureCode:
    """Why there is no answer, by the error that ended a run."""
    names = {kind.__name__ for kind in type(error).__mro__}
    status = getattr(error, "status_code", None)
    if "MaxTurnsExceeded" in names:
        return "max_turns"
    if isinstance(status, int):
        return "model_refused" if status < 500 and status not in _LATER else "model_unavailable"
    if names & _REFUSALS:
        return "model_refused"
    if isinstance(error, StorageError):
        return "storage_full" if isinstance(error, DiskFullError) else "storage_failed"
    if names & _NO_CONNECTION or isinstance(error, TimeoutError | ConnectionError):
        return "model_unavailable"
    return "model_failed"


def told_failure(error: Exception) -> tuple[str, str]:
    """The code and the words by which a stream tells why a turn has no answer."""
    if isinstance(error, ChatFailedError):
        return error.code, str(error)
    if isinstance(error, RunLockTimeoutError):
        return "conversation_busy", "another turn of this conversation is still running"
    if isinstance(error, ConflictError):
        return "conflict", str(error)
    if isinstance(error, StorageError):
        return (code := code_of(error)), DETAILS[code]
    if isinstance(error, InvalidValueError | InvalidTypeError | UnknownAgentError):
        return "validation_failed", str(error)
    return "model_failed", DETAILS["model_failed"]
