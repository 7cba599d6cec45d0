"""The errors that Recollect raises.

RecollectError
├── MissingExtraError          a class needs an extra that is not installed (also ImportError)
├── InvalidItemError           something that cannot be stored exactly (also TypeError)
├── SessionClosedError         a session was used after close() (also RuntimeError)
├── MissingAbilityError        a session cannot do what was asked of it (also TypeError)
├── WrongKeyError              no key opens what is stored (also ValueError)
├── ScanLimitError             a read would take more than max_scan_items (also RuntimeError)
├── SummaryFailedError         there is no summary; the error of the model's client is the cause
├── ExtractionError            a stage of the pipeline has no answer; the client's error is the cause
│   ├── UnusableAnswerError    the model answered what cannot be read; asking again may help
│   ├── ModelUnavailableError  it did not answer, now; asking later may help
│   └── ModelRefusedError      it will not answer this, however often it is asked
├── EmbeddingError             there are no vectors, or none that can be used
├── LeaseLostError             another worker has taken over a run; nothing more was written for it
├── HistoryLostError           a plain session was cleared and took nothing back; it holds the items
├── ConflictError              what is stored is not what the caller takes it for (also ValueError)
├── ImportFormatError          a file to import is not what it should be (also ValueError)
├── RunLockTimeoutError        another run held the session too long (also TimeoutError)
├── ConversationNotCreatedError   a session id was asked for before there is one (also ValueError)
└── StorageError               the database said no; its own error is the cause
    ├── NotADatabaseError      the path cannot be opened as a database
    ├── SchemaMismatchError    the tables are there, with another shape
    ├── MissingTablesError     the tables are not there: a migration must be run
    ├── AccessDeniedError      the server refused the user or the password
    ├── ReadOnlyError          the database cannot be written to
    ├── DiskFullError          no space left for the write
    ├── PartialBatchError      OpenAI Conversations took a part of a batch, and it says how much
    ├── ConnectionLostError    in the middle of a call, whose outcome is unknown (also ConnectionError)
    └── TransientError         nothing was written; the same call may succeed later
        ├── DatabaseBusyError  others held the database longer than the busy timeout
        └── UnreachableError   no connection could be made (also ConnectionError)

An argument that cannot be used is an `InvalidValueError` (a ValueError) or an `InvalidTypeError` (a
TypeError). They stand beside the tree: only the call is wrong.
"""

from typing import Any


class RecollectError(Exception):
    """The base of every error that Recollect raises on its own behalf."""


class InvalidValueError(ValueError):
    """An argument has a value that cannot be used; the message says which one and why."""


class InvalidTypeError(TypeError):
    """An argument has a type that cannot be used; the message says which one and why."""


class MissingExtraError(RecollectError, ImportError):
    """A class was used whose optional dependencies are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install 'recollect[{extra}]'")
        self.extra = extra


class InvalidItemError(RecollectError, TypeError):
    """An item cannot be stored so that it would come back exactly as it went in."""

    def __init__(self, reason: str, index: int | None = None) -> None:
        super().__init__(reason if index is None else f"item {index} cannot be stored: {reason}")
        self.reason = reason
        self.index = index


class SessionClosedError(RecollectError, RuntimeError):
    """A session was used after it was closed."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} is closed")
        self.session_id = session_id


class MissingAbilityError(RecollectError, TypeError):
    """A session lacks an ability that the call needs."""

    def __init__(
        self, session: object, ability: str, methods: list[str], bypassed: str | None = None
    ) -> None:
        names = ", ".join(f"{method}()" for method in methods)
        reason = f"it has no {names}" if bypassed is None else f"{names} would bypass its own {bypassed}()"
        super().__init__(f"{type(session).__name__} is not {ability}: {reason}")
        self.ability = ability


class WrongKeyError(RecollectError, ValueError):
    """No key that was given opens what a session holds; nothing was changed."""

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(f"session {session_id!r}: {reason}; nothing was changed")
        self.session_id = session_id


class ScanLimitError(RecollectError, RuntimeError):
    """A read of an encrypted session would take more stored items than `max_scan_items` allows."""

    def __init__(self, session_id: str, max_scan_items: int | None) -> None:
        super().__init__(
            f"session {session_id!r}: a read needs more than max_scan_items={max_scan_items};"
            " increase it, read fewer items, or delete expired ones with purge_expired()"
        )
        self.session_id = session_id


class SummaryFailedError(RecollectError):
    """There is no summary; what the model's client raised, if it did, is the cause."""


class ExtractionError(RecollectError):
    """A stage of the pipeline has no answer; what the model's client raised, if it did, is the cause."""

    def __init__(self, reason: str, raw_response: str = "") -> None:
        super().__init__(reason)
        self.raw_response = raw_response
        """What the model said, word for word, as far as it said anything."""
        self.prompt_tokens = 0
        self.completion_tokens = 0
        """What the calls cost that led here, as far as the provider said."""


class UnusableAnswerError(ExtractionError):
    """The model answered what cannot be read as an answer; it may do better when it is asked again."""


class ModelUnavailableError(ExtractionError):
    """The model did not answer: no connection, no time, too many requests, or a fault on its side."""

    retry_after: float | None = None
    """Seconds after which the provider wants to be asked again, if it said so."""


class ModelRefusedError(ExtractionError):
    """The model will not answer, however often it is asked: a wrong key, an unknown model, a refusal."""


class EmbeddingError(RecollectError):
    """There are no vectors, or none that can be used; what the client raised, if it did, is the cause."""


class LeaseLostError(RecollectError):
    """A worker took too long, and another has taken over its run; nothing more was written for it."""


class HistoryLostError(RecollectError):
    """A session that cannot replace its history atomically was cleared, and then took no items.

    The error of the session is the cause.
    """

    def __init__(self, session_id: str, items: list[dict[str, Any]]) -> None:
        super().__init__(
            f"session {session_id!r} was cleared and could not be filled again;"
            f" this error has its {len(items)} items as `items`"
        )
        self.session_id = session_id
        self.items = items
        """The history as it was."""


class ConflictError(RecollectError, ValueError):
    """What is stored is not what the caller takes it for; nothing was changed."""


class ImportFormatError(RecollectError, ValueError):
    """A file to import is not in a format that is understood; nothing was imported."""


class RunLockTimeoutError(RecollectError, TimeoutError):
    """Another run held the session for longer than the caller was ready to wait."""

    def __init__(self, session_id: str, seconds: float) -> None:
        super().__init__(f"session {session_id!r} is still in use by another run after {seconds:g} s")
        self.session_id = session_id


class ConversationNotCreatedError(RecollectError, ValueError, AttributeError):
    """The conversation has no id yet: it is created by the first call that needs it.

    It is an `AttributeError` too, so that `hasattr` and `isinstance` with a protocol can ask without harm.
    """

    def __init__(self) -> None:
        super().__init__(
            "session_id is not known yet: the conversation is created by the first call of "
            "get_items(), pop_item(), or add_items() with items"
        )


class StorageError(RecollectError):
    """The database refused an operation; its own error is the cause."""


class NotADatabaseError(StorageError):
    """The path cannot be opened as a database."""


class SchemaMismatchError(StorageError):
    """A table of that name exists with another shape."""


class ReadOnlyError(StorageError):
    """The database cannot be written to."""


class DiskFullError(StorageError):
    """There is no space left for the write; nothing of it was stored."""


class AccessDeniedError(StorageError):
    """The server refused the user or the password."""


class MissingTablesError(StorageError):
    """The tables are not there: a migration must be run first."""


class ConnectionLostError(StorageError, ConnectionError):
    """The connection broke in the middle of a call: what it was to write is stored whole, or not at all."""


class PartialBatchError(StorageError):
    """A batch of more than 20 items was stored in part; the error of the API is the cause."""

    def __init__(self, stored: int, in_doubt: int, total: int) -> None:
        doubt = f"; whether the next {in_doubt} were, too, is not known" if in_doubt else ""
        super().__init__(f"the first {stored} of {total} items were stored{doubt}")
        self.stored = stored
        """How many items the API has acknowledged, from the start of the batch."""
        self.in_doubt = in_doubt
        """How many after them may be stored as well: their request got no clear answer."""
        self.total = total


class TransientError(StorageError):
    """Nothing was written, and the same call may succeed later."""


class DatabaseBusyError(TransientError):
    """Others held the database for longer than the busy timeout; nothing was written."""


class UnreachableError(TransientError, ConnectionError):
    """No connection to the server could be made; nothing was written."""
