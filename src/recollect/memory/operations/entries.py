"""One entry: reading, confirming, rejecting and deleting it."""

from dataclasses import dataclass

from ..entry import Entry
from .description import Key, Operation, Route

_NOT_FOUND = ("not_found",)
_CONFLICT = ("not_found", "conflict")


@dataclass(frozen=True)
class GetEntry(Operation[Entry | None]):
    """One entry with its evidence, also if it is retired."""

    route = Route("GET", "/v1/entries/{content_id}", "entries.get", "Read an entry", codes=_NOT_FOUND)

    content_id: Key


@dataclass(frozen=True)
class GetHistory(Operation[list[Entry]]):
    """An entry and all entries that it has superseded, the oldest first."""

    route = Route(
        "GET",
        "/v1/entries/{content_id}/history",
        "entries.history",
        "Read the history of an entry",
        codes=_NOT_FOUND,
    )

    content_id: Key


@dataclass(frozen=True)
class ConfirmEntry(Operation[Entry]):
    """Confirm an entry: it is certain now, and it fades only from now on.

    A rejected entry is current again, and an expiry in the past is removed. A superseded entry, or one that
    does not exist, is a conflict.
    """

    route = Route(
        "POST",
        "/v1/entries/{content_id}/confirm",
        "entries.confirm",
        "Confirm an entry",
        scope="write",
        codes=_CONFLICT,
        is_repeatable=True,
    )

    content_id: Key


@dataclass(frozen=True)
class RejectEntry(Operation[Entry]):
    """Reject an entry: it is not current any more, and it is not learned again from the same words.

    The entries that it had superseded are current again, unless it is an edit of them. It stays readable
    until it is deleted or its evidence is erased. An entry that is not current is a conflict.
    """

    route = Route(
        "POST",
        "/v1/entries/{content_id}/reject",
        "entries.reject",
        "Reject an entry",
        scope="write",
        codes=_CONFLICT,
        is_repeatable=True,
    )

    content_id: Key


@dataclass(frozen=True)
class DeleteEntry(Operation[int]):
    """Delete an entry and all entries that it has superseded, for good; the result is their number."""

    route = Route(
        "DELETE",
        "/v1/entries/{content_id}",
        "entries.delete",
        "Delete an entry",
        scope="write",
        codes=_NOT_FOUND,
    )

    content_id: Key
