"""The errors of chats, and the failure code of each error that can end a run.

RecollectError
  ModelRefusedError
    ModelNotConfiguredError  the model of a chat has no API key
  ChatFailedError          the turn has no answer; `code` says why, and the message quotes no provider
  UnknownAgentError        no agent has this name (also LookupError)
  UnknownBranchError       no branch has this name (also LookupError)
  RunLockTimeoutError
    ConversationBusyError  another turn of the conversation is still running
  ConflictError
    TurnRunningError       this turn is still running
    TurnLostError          the turn was ended or erased by another process while it ran
"""

from collections.abc import Sequence
from typing import Literal

from ..errors import (
    ConflictError,
    DiskFullError,
    InvalidTypeError,
    InvalidValueError,
    ModelRefusedError,
    RecollectError,
    RunLockTimeoutError,
    StorageError,
)

FailureCode = Literal[
    "model_unavailable",
    "model_not_configured",
    "model_refused",
    "model_failed",
    "max_turns",
    "interrupted",
    "storage_failed",
    "storage_full",
]

DETAILS: dict[str, str] = {
    "model_unavailable": "the model did not respond in time or cannot be reached; try again later",
    "model_not_configured": "the provider does not know the model, or the API key is missing or not valid;"
    " see chat.model and chat.api_key",
    "model_refused": "the model refused to answer this message",
    "model_failed": "the model or one of its tools failed without an answer",
    "max_turns": "the agent reached its limit of steps without an answer",
    "interrupted": "the turn was interrupted before it had an answer",
    "storage_failed": "the database failed during the turn",
    "storage_full": "the disk of the database is full",
}
_RETRYABLE = (408, 409, 425, 429)
_WRONG_CONFIGURATION = (401, 403, 404)  # of a key or a model, whatever the message says
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
    """The turn has no answer. The message of the user stays stored, and the conversation can go on."""

    def __init__(self, code: str) -> None:
        super().__init__(DETAILS.get(code, DETAILS["model_failed"]))
        self.code = code
        """The reason: `model_unavailable`, `model_refused`, `model_failed`, `max_turns`, `interrupted`, …"""


class ModelNotConfiguredError(ModelRefusedError):
    """The model of a chat has no API key."""


class ConversationBusyError(RunLockTimeoutError):
    """Another turn of the conversation held the lock for longer than this turn may wait."""


class TurnRunningError(ConflictError):
    """A turn was started twice, and the first is still running. Its answer will be in the conversation."""

    def __init__(self) -> None:
        super().__init__("this turn is still running")


class TurnLostError(ConflictError):
    """Another process has ended this turn as interrupted, or has erased it: it must not write any more."""

    def __init__(self) -> None:
        super().__init__("the turn was ended as interrupted by another process")


class UnknownBranchError(RecollectError, LookupError):
    """No branch has this name."""

    def __init__(self) -> None:
        super().__init__("there is no branch of this name")


class UnknownAgentError(RecollectError, LookupError):
    """No agent has this name."""

    def __init__(self, name: object, known: Sequence[str]) -> None:
        super().__init__(f"there is no agent {str(name)[:64]!r}; there are {', '.join(known)}")
        self.name = name


def failure_code(error: BaseException) -> FailureCode:
    """The code of a failed turn, by the error that ended its run."""
    names = {kind.__name__ for kind in type(error).__mro__}
    status = getattr(error, "status_code", None)
    if "MaxTurnsExceeded" in names:
        return "max_turns"
    if status in _WRONG_CONFIGURATION or isinstance(error, ModelNotConfiguredError):
        return "model_not_configured"
    if isinstance(status, int):
        return "model_refused" if status < 500 and status not in _RETRYABLE else "model_unavailable"
    if names & _REFUSALS:
        return "model_refused"
    if isinstance(error, StorageError):
        return "storage_full" if isinstance(error, DiskFullError) else "storage_failed"
    if names & _NO_CONNECTION or isinstance(error, TimeoutError | ConnectionError):
        return "model_unavailable"
    return "model_failed"


def describe_failure(error: Exception) -> tuple[str, str]:
    """The code and the detail of the event `turn.failed`."""
    if isinstance(error, ChatFailedError):
        return error.code, str(error)
    if isinstance(error, RunLockTimeoutError):
        return "conversation_busy", "another turn of this conversation is still running"
    if isinstance(error, ConflictError):
        return "conflict", str(error)
    if isinstance(error, StorageError):
        return (code := failure_code(error)), DETAILS[code]
    if isinstance(error, InvalidValueError | InvalidTypeError | UnknownAgentError):
        return "validation_failed", str(error)
    return "model_failed", DETAILS["model_failed"]
