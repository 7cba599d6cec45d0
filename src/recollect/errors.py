"""The errors that Recollect raises.

RecollectError
├── MissingExtraError          a class needs an extra that is not installed (also ImportError)
├── InvalidItemError           an item that cannot be stored exactly (also TypeError)
├── SessionClosedError         a session was used after close() (also RuntimeError)
├── MissingAbilityError        a session lacks an ability (also TypeError)
├── WrongKeyError              no key decrypts any item (also ValueError)
├── ScanLimitError             a read needs more than max_scan_items (also RuntimeError)
├── SummaryFailedError         no summary; the error of the model's client is the cause
├── ExtractionError            a stage has no result; the client's error is the cause
│   ├── UnusableAnswerError    the response cannot be parsed; a retry may help
│   ├── ModelUnavailableError  the model did not respond; a later retry may help
│   └── ModelRefusedError      the model refuses; a retry does not help
├── EmbeddingError             the embedder returned no usable vectors
├── LeaseLostError             another worker took over the run; nothing more was written
├── HistoryLostError           a plain session was cleared and not refilled; the error has the items
├── ConflictError              the stored data is not what the caller expects (also ValueError)
├── ImportFormatError          the file to import has the wrong format (also ValueError)
├── RunLockTimeoutError        another run locked the session too long (also TimeoutError)
├── ConversationNotCreatedError   the session has no id yet (also ValueError)
└── StorageError               the database reported an error, which is the cause
    ├── NotADatabaseError      the path cannot be opened as a database
    ├── FileReplacedError      the file was replaced or deleted while it was in use
    ├── SchemaMismatchError    the tables have another shape
    ├── MissingTablesError     the tables do not exist: run the migrations
    ├── MissingExtensionError  the database server lacks an extension; the message says what to install
    ├── AccessDeniedError      the server rejected the user or the password
    ├── ReadOnlyError          the database cannot be written to
    ├── DiskFullError          no space left for the write
    ├── StatementRefusedError  the database refused a statement: nothing was written, a retry does not help
    ├── PartialBatchError      OpenAI Conversations stored part of a batch; the error says how much
    ├── ConnectionLostError    during a call, whose outcome is unknown (also ConnectionError)
    └── TransientError         nothing was written; the same call may succeed later
        ├── DatabaseBusyError  the database was locked longer than the busy timeout
        ├── TransactionConflictError   the transaction conflicted with another one
        └── UnreachableError   no connection could be made (also ConnectionError)

An invalid argument raises `InvalidValueError` (a ValueError) or `InvalidTypeError` (a TypeError). These two
are not in the tree: only the call is wrong.
"""

from typing import Any


class RecollectError(Exception):
    """The base class of the errors that Recollect raises."""


class InvalidValueError(ValueError):
    """An argument has an invalid value. The message says which argument and why."""


class InvalidTypeError(TypeError):
    """An argument has an invalid type. The message says which argument and why."""


class MissingExtraError(RecollectError, ImportError):
    """The optional dependencies of a class are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install 'recollect-memory[{extra}]'")
        self.extra = extra


class InvalidItemError(RecollectError, TypeError):
    """An item cannot be stored exactly: reading it back would return something else."""

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
    """None of the given keys decrypts the items of a session. Nothing was changed."""

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(f"session {session_id!r}: {reason}; nothing was changed")
        self.session_id = session_id


class ScanLimitError(RecollectError, RuntimeError):
    """A read of an encrypted session needs more stored items than `max_scan_items` allows."""

    def __init__(self, session_id: str, max_scan_items: int | None) -> None:
        super().__init__(
            f"session {session_id!r}: a read needs more than max_scan_items={max_scan_items};"
            " increase it, read fewer items, or delete expired ones with purge_expired()"
        )
        self.session_id = session_id


class SummaryFailedError(RecollectError):
    """No summary was made. The error of the model's client, if there is one, is the cause."""


class ExtractionError(RecollectError):
    """A stage of the pipeline failed. The error of the model's client, if there is one, is the cause."""

    def __init__(self, reason: str, raw_response: str = "") -> None:
        super().__init__(reason)
        self.raw_response = raw_response
        """The response of the model, verbatim; empty if there was none."""
        self.prompt_tokens = 0
        self.completion_tokens = 0
        """The tokens of all calls that led to this error, as far as the provider reported them."""


class UnusableAnswerError(ExtractionError):
    """The response of the model cannot be parsed. A retry may help."""


class ModelUnavailableError(ExtractionError):
    """The model did not respond: no connection, a timeout, a rate limit, or a server error."""

    retry_after: float | None = None
    """After how many seconds the provider accepts a retry, if it said so."""


class ModelRefusedError(ExtractionError):
    """The model refuses the request: a wrong key, an unknown model, or a refusal. A retry does not help."""


class EmbeddingError(RecollectError):
    """No usable vectors were returned. The error of the client, if there is one, is the cause."""


class LeaseLostError(RecollectError):
    """The lease of a worker expired, and another worker has taken over its run. Nothing was written."""


class HistoryLostError(RecollectError):
    """A session that cannot replace its history atomically was cleared, and then accepted no items.

    The error of the session is the cause.
    """

    def __init__(self, session_id: str, items: list[dict[str, Any]]) -> None:
        super().__init__(
            f"session {session_id!r} was cleared, and its history could not be restored;"
            f" the {len(items)} items are in the attribute `items` of this error"
        )
        self.session_id = session_id
        self.items = items
        """The history before the change."""


class ConflictError(RecollectError, ValueError):
    """The stored state differs from what the caller expects. Nothing was changed."""


class ImportFormatError(RecollectError, ValueError):
    """A file to import has an unknown format. Nothing was imported."""


class RunLockTimeoutError(RecollectError, TimeoutError):
    """Another run held the lock of the session for longer than the timeout."""

    def __init__(self, session_id: str, seconds: float) -> None:
        super().__init__(f"session {session_id!r} is still in use by another run after {seconds:g} s")
        self.session_id = session_id


class ConversationNotCreatedError(RecollectError, ValueError, AttributeError):
    """The conversation has no id yet. The first call that needs the conversation creates it.

    This is also an `AttributeError`, so that `hasattr` and `isinstance` with a protocol return `False`.
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


class FileReplacedError(StorageError):
    """The file was replaced or deleted while it was in use, or a log of another file is beside it.

    Nothing was read or written. The process must open the file again.
    """


class SchemaMismatchError(StorageError):
    """A table with that name exists and has other columns."""


class MissingExtensionError(StorageError):
    """The database server lacks an extension that long-term memory needs. Nothing was created."""

    def __init__(self, extension: str, package: str) -> None:
        super().__init__(
            f"long-term memory needs the extension {extension}, which this PostgreSQL server does not have:"
            f" install it there (Debian: apt-get install {package}). Sessions do not need it: open them with"
            " create_tables=True"
        )


class ReadOnlyError(StorageError):
    """The database cannot be written to."""


class DiskFullError(StorageError):
    """No space is left for the write. Nothing was stored."""


class AccessDeniedError(StorageError):
    """The server refused the user or the password."""


class MissingTablesError(StorageError):
    """The tables do not exist. Run the migrations first."""


class ConnectionLostError(StorageError, ConnectionError):
    """The connection broke during a call, or the disk did not confirm a write.

    The write was stored completely, or not at all.
    """


class StatementRefusedError(StorageError):
    """The database refused a statement: the data breaks a rule of the tables, or the database is damaged.

    Nothing was written, and the same call would be refused again.
    """


class PartialBatchError(StorageError):
    """A batch of more than 20 items was stored in part. The error of the API is the cause."""

    def __init__(self, stored: int, in_doubt: int, total: int) -> None:
        doubt = f"; it is unknown whether the next {in_doubt} were stored" if in_doubt else ""
        super().__init__(f"the first {stored} of {total} items were stored{doubt}")
        self.stored = stored
        """How many items the API has acknowledged, from the start of the batch."""
        self.in_doubt = in_doubt
        """How many items after those may be stored too: the outcome of their request is unknown."""
        self.total = total


class TransientError(StorageError):
    """Nothing was written. The same call may succeed later."""


class DatabaseBusyError(TransientError):
    """The database stayed locked for longer than the busy timeout. Nothing was written."""


class TransactionConflictError(TransientError):
    """The transaction was rolled back because of a conflict with another one. Nothing was written."""


class UnreachableError(TransientError, ConnectionError):
    """No connection to the server could be opened. Nothing was written."""
