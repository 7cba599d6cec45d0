"""OpenAI's Conversations API: conversations, and the items in them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from ...items import Item
from .conversation_items import make_id, shown_form, stored_form
from .core import ApiError, Dialect, json_body
from .openai_dialect import OpenAIDialect

MAX_ITEMS = 20  # per request
MAX_PAGE = 100  # items
DEFAULT_PAGE = 20
MAX_METADATA = 16  # pairs


@dataclass
class Conversation:
    """A stored conversation."""

    id: str
    metadata: dict[str, str] = field(default_factory=dict)
    created_at: int = field(default_factory=lambda: int(time.time()))
    items: list[Item] = field(default_factory=list)

    def resource(self) -> JSONResponse:
        """Return the conversation as the API shows it."""
        return JSONResponse(
            {
                "id": self.id,
                "object": "conversation",
                "created_at": self.created_at,
                "metadata": self.metadata,
            }
        )


class ConversationsApi:
    """The conversations of the server. No handler awaits between reading and writing, so each is atomic."""

    dialect: Dialect = OpenAIDialect()
    path = "/v1/conversations"

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the API."""
        one, items = f"{self.path}/{{conversation_id}}", f"{self.path}/{{conversation_id}}/items"
        return [
            Route(self.path, self._create, methods=["POST"]),
            Route(one, self._retrieve, methods=["GET"]),
            Route(one, self._update, methods=["POST"]),
            Route(one, self._delete, methods=["DELETE"]),
            Route(items, self._list_items, methods=["GET"]),
            Route(items, self._create_items, methods=["POST"]),
            Route(items + "/{item_id}", self._retrieve_item, methods=["GET"]),
            Route(items + "/{item_id}", self._delete_item, methods=["DELETE"]),
        ]

    # --- for tests ---

    def add(self, conversation_id: str) -> None:
        """Create a conversation with a given id unless it exists."""
        self._conversations.setdefault(conversation_id, Conversation(conversation_id))

    def ids(self) -> list[str]:
        """Return the ids of all conversations."""
        return list(self._conversations)

    def items_of(self, conversation_id: str) -> list[Item]:
        """Return all items of a conversation."""
        return list(self._conversations[conversation_id].items)

    def known_items(self, conversation_id: str) -> list[Item]:
        """Return all items of a conversation. Raise an `ApiError` if it does not exist."""
        return list(self._find(conversation_id).items)

    def append(self, conversation_id: str, items: Sequence[Item]) -> None:
        """Add items to a conversation."""
        stored = [stored_form(item, f"items[{index}]") for index, item in enumerate(items)]
        _append(self._find(conversation_id), stored)

    def reset(self) -> None:
        """Delete all conversations."""
        self._conversations.clear()

    # --- conversations ---

    async def _create(self, request: Request) -> JSONResponse:
        body = await json_body(request)
        items = _new_items(body.get("items") or [], at_least=0)
        conversation = Conversation(make_id("conv"), _metadata(body))
        _append(conversation, items)
        self._conversations[conversation.id] = conversation
        return conversation.resource()

    async def _retrieve(self, request: Request) -> JSONResponse:
        return self._requested_conversation(request).resource()

    async def _update(self, request: Request) -> JSONResponse:
        body = await json_body(request)
        conversation = self._requested_conversation(request)
        conversation.metadata = _metadata(body)
        return conversation.resource()

    async def _delete(self, request: Request) -> JSONResponse:
        conversation = self._requested_conversation(request)
        del self._conversations[conversation.id]
        return JSONResponse({"id": conversation.id, "object": "conversation.deleted", "deleted": True})

    # --- items ---

    async def _create_items(self, request: Request) -> JSONResponse:
        body = await json_body(request)
        items = _new_items(body.get("items"), at_least=1)
        _append(self._requested_conversation(request), items)
        return _page(items, has_more=False, include=_included(request))

    async def _list_items(self, request: Request) -> JSONResponse:
        items = list(self._requested_conversation(request).items)
        if _choice(request, "order", ("desc", "asc")) == "desc":
            items.reverse()
        after = request.query_params.get("after")
        if after is not None:
            items = items[_position(items, after, 400) + 1 :]
        limit = _limit(request)
        return _page(items[:limit], has_more=len(items) > limit, include=_included(request))

    async def _retrieve_item(self, request: Request) -> JSONResponse:
        items = self._requested_conversation(request).items
        item = items[_position(items, request.path_params["item_id"], 404)]
        return JSONResponse(shown_form(item, _included(request)))

    async def _delete_item(self, request: Request) -> JSONResponse:
        conversation = self._requested_conversation(request)
        del conversation.items[_position(conversation.items, request.path_params["item_id"], 404)]
        return conversation.resource()

    def _requested_conversation(self, request: Request) -> Conversation:
        return self._find(request.path_params["conversation_id"])

    def _find(self, conversation_id: str) -> Conversation:
        conversation = self._conversations.get(conversation_id)
        if conversation is None:
            raise ApiError(404, f"Conversation with id '{conversation_id}' not found.")
        return conversation


# --- request ---


def _new_items(given: Any, at_least: int) -> list[Item]:
    if not isinstance(given, list):
        raise ApiError(400, "Invalid type for 'items': expected an array.", "items", "invalid_type")
    if len(given) > MAX_ITEMS:
        message = f"Invalid 'items': expected at most {MAX_ITEMS} items, but got {len(given)}."
        raise ApiError(400, message, "items", "array_above_max_length")
    if len(given) < at_least:
        raise ApiError(400, "Invalid 'items': expected at least one item.", "items", "empty_array")
    return [stored_form(item, f"items[{index}]") for index, item in enumerate(given)]


def _append(conversation: Conversation, items: list[Item]) -> None:
    known = {item["id"] for item in conversation.items}
    for item in items:
        if item["id"] in known:
            raise ApiError(400, f"Duplicate item found with id {item['id']}.", "items", "duplicate_item")
        known.add(item["id"])
    conversation.items += items


def _metadata(body: dict[str, Any]) -> dict[str, str]:
    metadata = body.get("metadata") or {}
    if len(metadata) > MAX_METADATA:
        message = f"Invalid 'metadata': expected at most {MAX_METADATA} pairs."
        raise ApiError(400, message, "metadata", "object_above_max_properties")
    return dict(metadata)


def _limit(request: Request) -> int:
    given = request.query_params.get("limit", str(DEFAULT_PAGE))
    if not given.isdecimal() or not 1 <= int(given) <= MAX_PAGE:
        message = f"Invalid 'limit': expected a number from 1 to {MAX_PAGE}, but got {given}."
        raise ApiError(400, message, "limit", "invalid_value")
    return int(given)


def _choice(request: Request, name: str, choices: Sequence[str]) -> str:
    given = request.query_params.get(name, choices[0])
    if given not in choices:
        raise ApiError(400, f"Invalid '{name}': expected one of {choices}.", name, "invalid_value")
    return given


def _included(request: Request) -> list[str]:
    return request.query_params.getlist("include") + request.query_params.getlist("include[]")


def _position(items: list[Item], item_id: str, status: int) -> int:
    for position, item in enumerate(items):
        if item["id"] == item_id:
            return position
    raise ApiError(status, f"Item with id '{item_id}' not found.")


def _page(items: list[Item], has_more: bool, include: Sequence[str]) -> JSONResponse:
    return JSONResponse(
        {
            "object": "list",
            "data": [shown_form(item, include) for item in items],
            "first_id": items[0]["id"] if items else None,
            "last_id": items[-1]["id"] if items else None,
            "has_more": has_more,
        }
    )
