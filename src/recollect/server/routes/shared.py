"""Helpers of several routes: path ids, pages, ETags, audit targets and receipts."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from fastapi import APIRouter, Header, Path, Query, Request, Response

from ...cursors import make_cursor
from ...memory.conversation import Conversation
from ...memory.rights.receipt import Receipt
from ...memory.store import MemoryStore
from ..access.authentication import Caller
from ..cursors import read_cursor
from ..idempotency import Ids
from ..problems import Problem, translate_input_errors
from ..schemas import examples
from ..schemas.base import HIT_LIMIT, MAX_WAIT, PAGE_SIZE, PageQuery, encode_json, json_response
from ..schemas.conversations import NewMessage
from ..service import Service

T = TypeVar("T")

CLOSED = "The conversation is closed. Nothing can be added to it."

_NO_NUL = r"^[^\u0000]+$"
_MANY = 200  # objects: serializing more at once would block the event loop
_TAG = re.compile(r'(W/)?"([^"]*)"')


def _id(description: str, example: str) -> Any:
    return Path(min_length=1, max_length=255, pattern=_NO_NUL, description=description, examples=[example])


ConversationId: TypeAlias = Annotated[str, _id("The id of the conversation.", examples.CONVERSATION_ID)]
MessageId: TypeAlias = Annotated[str, _id("The id of the message.", examples.LATER_MESSAGE_ID)]
MemoryId: TypeAlias = Annotated[str, _id("The id of the memory.", examples.WRITTEN_MEMORY_ID)]
ContentId: TypeAlias = Annotated[str, _id("The id of the entry.", examples.CONTENT_ID)]
RunId: TypeAlias = Annotated[str, _id("The id of the run.", examples.RUN_ID)]
PATH_ARGUMENTS: dict[str, Any] = {
    "conversation_id": ConversationId,
    "message_id": MessageId,
    "memory_id": MemoryId,
    "content_id": ContentId,
    "run_id": RunId,
}
"""The arguments that may be in a path, by their names."""
IfMatch: TypeAlias = Annotated[
    str | None,
    Header(
        description="The `ETag` that you read. The change is made only if it is still current.",
        max_length=1000,
        examples=['"2"'],
    ),
]

Wait = Annotated[
    float | None,
    Query(
        ge=0,
        le=MAX_WAIT,
        description="Seconds to wait until everything recorded for this agent and user is learned and has"
        " vectors. The response is sent earlier if that is done, and at the latest after this time.",
        examples=[5],
    ),
]

VERSIONED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "The version.", "schema": {"type": "string"}}}}
}
CREATED: dict[int | str, dict[str, Any]] = {
    201: {
        "headers": {"Location": {"description": "The URL of the new resource.", "schema": {"type": "string"}}}
    }
}


def require_found(value: T | None, kind: str) -> T:
    """The value. Raises `not_found` if there is none, also for data of another tenant."""
    if value is None:
        raise Problem("not_found", f"There is no {kind} with this id.")
    return value


async def find_conversation(store: MemoryStore, conversation_id: str) -> Conversation:
    """A conversation without its messages."""
    with translate_input_errors():
        outline = await store.get_conversation_outline(conversation_id)
    return Conversation.from_dict(require_found(outline, "conversation"))


def require_admin_without_owner(caller: Caller, *owner: str | None) -> None:
    """Refuse a list that is not limited to one owner, unless the caller's key has the scope admin."""
    if None in owner and not caller.allows("admin"):
        raise Problem("forbidden", "Listing data of several users needs a key with the scope admin.")


def receipt_response(receipt: Receipt, kind: str) -> Response:
    """The receipt of an erasure. Of several concurrent requests, one gets it and the others `not_found`."""
    if not receipt.counts:
        raise Problem("not_found", f"There is no {kind} with this id.")
    return json_response(receipt.to_dict())


def set_audit_target(request: Request, kind: str, identifier: str) -> None:
    """Set what the audit log names as the target of a request. The id must be one that the service made."""
    request.state.audit_target = f"{kind}:{identifier}"


def allow_only(router: APIRouter, method: str, path: str) -> None:
    """Refuse other methods on a fixed path. Call it before routes with ids, which match the path, too."""

    async def refuse() -> None:
        raise Problem("method_not_allowed", f"Only {method} is allowed here.", headers={"Allow": method})

    others = sorted({"GET", "POST", "PUT", "PATCH", "DELETE"} - {method})
    router.add_api_route(path, refuse, methods=others, include_in_schema=False)


def message_dicts(messages: Sequence[NewMessage], ids: Ids) -> list[dict[str, Any]]:
    """Messages as the store takes them. A message without an id gets the same id at every retry."""
    return [message.to_store(ids(f"message {number}")) for number, message in enumerate(messages)]


# --- limits and pages ---


def check_message_count(service: Service, messages: Sequence[object]) -> None:
    """Refuse a request with more messages than `server.max_messages`."""
    limit = service.settings.server.max_messages
    if len(messages) > limit:
        raise invalid_field("body.messages", f"must have at most {limit} items")


def check_page_size(service: Service, limit: int | None) -> int:
    """The number of rows of a page: the requested one, or the default. Too many are refused."""
    return _check_limit(service, limit, PAGE_SIZE, "query.limit")


def check_hit_limit(service: Service, limit: int | None) -> int:
    """The number of hits of a search: the requested one, or the default. Too many are refused."""
    return _check_limit(service, limit, HIT_LIMIT, "body.limit")


def _check_limit(service: Service, limit: int | None, default: int, field: str) -> int:
    largest = service.settings.server.max_page_size
    if limit is not None and limit > largest:
        raise invalid_field(field, f"must be at most {largest}")
    return min(default, largest) if limit is None else limit


def invalid_field(field: str, message: str) -> Problem:
    """The problem of one invalid field of a request."""
    return Problem("validation_failed", f"{field}: {message}", errors=[{"field": field, "message": message}])


async def encode_long_json(make_value: Callable[[], Any], size: int) -> bytes:
    """JSON of a value with about `size` objects. A large one is made in a thread, off the event loop."""
    if size <= _MANY:
        return encode_json(make_value())
    return await asyncio.to_thread(lambda: encode_json(make_value()))


async def long_json_response(make_value: Callable[[], Any], size: int) -> Response:
    """A JSON response with about `size` objects."""
    return Response(await encode_long_json(make_value, size), media_type="application/json")


@dataclass(frozen=True)
class Pages(Generic[T]):
    """The pages of one kind of list: the position that a cursor holds, and the JSON of a row."""

    cursor_kind: str
    """Cursors of another kind are refused."""
    position: Callable[[T], str | int]
    serialize: Callable[[T], Any]
    position_type: type = str

    def read_position(self, cursor: str | None) -> Any:
        """The position that a cursor holds; `None` for the first page."""
        return None if cursor is None else read_cursor(self.cursor_kind, cursor, self.position_type)[0]

    async def respond(
        self, service: Service, query: PageQuery, read: Callable[[Any, int], Awaitable[Sequence[T]]]
    ) -> Response:
        """The page that a query names. `read` gets the position of its cursor and a number of rows."""
        limit = check_page_size(service, query.limit)
        position = self.read_position(query.cursor)
        with translate_input_errors():
            rows = await read(position, limit + 1)
        return json_response(self.make_page(rows, limit))

    def make_page(self, rows: Sequence[T], limit: int) -> dict[str, Any]:
        """The page of up to `limit` rows. A row beyond the limit shows that there is a next page."""
        shown = rows[:limit]
        has_more = len(rows) > limit
        next_cursor = make_cursor(self.cursor_kind, self.position(shown[-1])) if has_more else None
        return {"items": [self.serialize(row) for row in shown], "next_cursor": next_cursor}


# --- versions ---


def etag_header(version: int | str) -> dict[str, str]:
    """The `ETag` header of a version."""
    return {"ETag": f'"{version}"'}


def check_if_match(if_match: str, version: int) -> None:
    """Refuse a change whose `If-Match` does not name the current version."""
    if if_match.strip() == "*":
        return
    tags = {tag for weak, tag in _TAG.findall(if_match) if not weak}
    if str(version) not in tags:
        raise changed_problem()


def names_version(if_none_match: str, version: str) -> bool:
    """Whether an `If-None-Match` names a version. A weak tag does, too."""
    return if_none_match.strip() == "*" or version in {tag for _, tag in _TAG.findall(if_none_match)}


def changed_problem() -> Problem:
    """The problem of a change based on an outdated version."""
    return Problem("precondition_failed", "The resource has changed since it was read. Read it again.")
