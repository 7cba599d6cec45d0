"""What routes have in common: ids in paths, pages, and versions."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

from fastapi import APIRouter, Header, Path, Query, Request, Response

from ...memory.conversation import Conversation
from ...memory.rights.receipt import Receipt
from ...memory.store import MemoryStore
from ..access.authentication import Caller
from ..cursors import make_cursor
from ..idempotency import Ids
from ..problems import Problem, refused_input
from ..schemas import examples
from ..schemas.base import HIT_LIMIT, PAGE_SIZE, answer_json, encoded
from ..schemas.conversations import NewMessage
from ..service import Service

T = TypeVar("T")

LONGEST_WAIT = 30
"""Seconds that a request may wait for the learning."""

_NO_NUL = r"^[^\u0000]+$"
_MANY = 200  # things: to tell more at once would hold up the event loop
_TAG = re.compile(r'(W/)?"([^"]*)"')


def _id(description: str, example: str) -> Any:
    return Path(min_length=1, max_length=255, pattern=_NO_NUL, description=description, examples=[example])


ConversationId: TypeAlias = Annotated[str, _id("Of the conversation.", examples.CONVERSATION_ID)]
MessageId: TypeAlias = Annotated[str, _id("Of the message.", examples.LATER_MESSAGE_ID)]
MemoryId: TypeAlias = Annotated[str, _id("Of the memory.", examples.WRITTEN_MEMORY_ID)]
ContentId: TypeAlias = Annotated[str, _id("Of the entry.", examples.CONTENT_ID)]
RunId: TypeAlias = Annotated[str, _id("Of the run.", examples.RUN_ID)]
IfMatch: TypeAlias = Annotated[
    str | None,
    Header(
        description="The `ETag` that was read: the change is made only if it is still that.",
        max_length=1000,
        examples=['"2"'],
    ),
]

Wait = Annotated[
    float | None,
    Query(
        ge=0,
        le=LONGEST_WAIT,
        description="Seconds to wait until all that was recorded of this agent and user is learned and has"
        " vectors. The answer comes sooner if that is so, and in any case when they are over.",
        examples=[5],
    ),
]

VERSIONED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "Its version.", "schema": {"type": "string"}}}}
}
MADE: dict[int | str, dict[str, Any]] = {
    201: {"headers": {"Location": {"description": "Where it is read.", "schema": {"type": "string"}}}}
}


def found(thing: T | None, what: str) -> T:
    """What was looked for; a problem if it is not there, or another tenant's."""
    if thing is None:
        raise Problem("not_found", f"there is no {what} with this id")
    return thing


async def find_conversation(store: MemoryStore, conversation_id: str) -> Conversation:
    """A conversation without its messages."""
    with refused_input():
        told = await store.get_conversation_outline(conversation_id)
    return Conversation.from_dict(found(told, "conversation"))


def need_admin_beyond_one_user(caller: Caller, *owner: str | None) -> None:
    """Lists over all users of a tenant are for those who may see all of them."""
    if None in owner and not caller.allows("admin"):
        raise Problem("forbidden", "without naming whose, this needs a key with the scope admin")


def answer_receipt(receipt: Receipt, what: str) -> Response:
    """The receipt of an erasure; of several requests at once for the same, the others find nothing."""
    if not receipt.counts:
        raise Problem("not_found", f"there is no {what} with this id")
    return answer_json(receipt.to_dict())


def note_target(request: Request, kind: str, identifier: str) -> None:
    """Tell the audit log what a request was about, by an id that we made."""
    request.state.audit_target = f"{kind}:{identifier}"


def allow_only(router: APIRouter, method: str, path: str) -> None:
    """Refuse other methods on a path that would else be taken for an id: call it before routes with ids."""

    async def refuse() -> None:
        raise Problem("method_not_allowed", f"only {method} can be used here", headers={"Allow": method})

    others = sorted({"GET", "POST", "PUT", "PATCH", "DELETE"} - {method})
    router.add_api_route(path, refuse, methods=others, include_in_schema=False)


def tell_messages(messages: Sequence[NewMessage], ids: Ids) -> list[dict[str, Any]]:
    """Messages as the store reads them; one without an id has the same one whenever it is sent again."""
    return [message.told(ids(f"message {number}")) for number, message in enumerate(messages)]


# --- limits and pages ---


def check_count(service: Service, messages: Sequence[object]) -> None:
    """A request may hold only so many messages."""
    most = service.settings.server.max_messages
    if len(messages) > most:
        raise refused("body.messages", f"must have at most {most} items")


def check_page_size(service: Service, limit: int | None) -> int:
    """How many rows a page is to hold, if it may."""
    return _within(service, limit, PAGE_SIZE, "query.limit")


def check_hit_limit(service: Service, limit: int | None) -> int:
    """How many hits are wanted, if so many may be."""
    return _within(service, limit, HIT_LIMIT, "body.limit")


def _within(service: Service, limit: int | None, default: int, field: str) -> int:
    most = service.settings.server.max_page_size
    if limit is not None and limit > most:
        raise refused(field, f"must be at most {most}")
    return min(default, most) if limit is None else limit


def refused(field: str, message: str) -> Problem:
    """A field of a request is not as it should be."""
    return Problem("validation_failed", f"{field}: {message}", errors=[{"field": field, "message": message}])


async def encode_long(tell: Callable[[], Any], size: int) -> bytes:
    """JSON that may be long: where it tells many things, it is made in a thread, and holds up nobody."""
    if size <= _MANY:
        return encoded(tell())
    return await asyncio.to_thread(lambda: encoded(tell()))


async def answer_long(tell: Callable[[], Any], size: int) -> Response:
    """An answer in JSON that may be long."""
    return Response(await encode_long(tell, size), media_type="application/json")


def page_of(
    rows: Sequence[T], limit: int, kind: str, place: Callable[[T], str | int], tell: Callable[[T], Any]
) -> dict[str, Any]:
    """A page of rows, of which one more than the limit was read to see whether there is another page."""
    shown = rows[:limit]
    next_cursor = make_cursor(kind, place(shown[-1])) if len(rows) > limit else None
    return {"items": [tell(row) for row in shown], "next_cursor": next_cursor}


# --- versions ---


def tag_of(version: int) -> dict[str, str]:
    """The header that names a version."""
    return {"ETag": f'"{version}"'}


def check_match(if_match: str, version: int) -> None:
    """Whether an `If-Match` names the version that is there."""
    if if_match.strip() == "*":
        return
    tags = {tag for weak, tag in _TAG.findall(if_match) if not weak}
    if str(version) not in tags:
        raise changed_since()


def changed_since() -> Problem:
    """Another has changed it since it was read."""
    return Problem("precondition_failed", "it has been changed since it was read: read it again")
