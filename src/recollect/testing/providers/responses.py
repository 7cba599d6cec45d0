"""OpenAI's Responses API."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from ...items import Item, find_orphans, is_call, is_output, type_of
from .conversation_items import make_id, stored_form
from .conversations import ConversationsApi
from .core import ApiError, Dialect
from .openai_dialect import OpenAIDialect
from .replies import Reply, Usage
from .response_output import Event, item_events, output_items
from .scripted import ScriptedApi, event, require, require_objects

_TOO_LONG = "Your input exceeds the context window of this model."
_REQUIRED = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
}
# Request fields that a response repeats, with their defaults.
_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponsesApi(ScriptedApi):
    """Return scripted replies and store them. A request can continue a response or a conversation."""

    dialect: Dialect = OpenAIDialect("input", _TOO_LONG)
    path = "/v1/responses"

    def __init__(self, conversations: ConversationsApi) -> None:
        super().__init__()
        self._conversations = conversations
        self._responses: dict[str, dict[str, Any]] = {}
        self._histories: dict[str, list[Item]] = {}

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the API."""
        one = Route(f"{self.path}/{{response_id}}", self._retrieve, methods=["GET"])
        return [*super().routes(), one]

    def reset(self) -> None:
        """Clear all scripted replies and stored responses."""
        super().reset()
        self._responses.clear()
        self._histories.clear()

    async def _retrieve(self, request: Request) -> JSONResponse:
        response_id = request.path_params["response_id"]
        if response_id not in self._responses:
            raise ApiError(404, f"Response with id '{response_id}' not found.")
        return JSONResponse(self._responses[response_id])

    # --- request ---

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:  # noqa: ARG002
        """Reject invalid requests: invalid items, or a history with orphans."""
        require(body, "model", str)
        if not isinstance(require(body, "input", str, list), str):
            for index, item in enumerate(require_objects(body, "input")):
                _check_item(item, f"input[{index}]")
                if _conversation_id(body) is not None:
                    stored_form(item, f"input[{index}]")  # raises if the item cannot be stored
        _check_whole([*self._earlier(body), *_input_items(body)])

    def prompt(self, body: dict[str, Any]) -> Any:
        """Return the instructions, the tools, and all items."""
        items = [*self._earlier(body), *_input_items(body)]
        return [body.get("instructions"), body.get("tools"), items]

    def _earlier(self, body: dict[str, Any]) -> list[Item]:
        """Return the items of the response or conversation that the request continues."""
        if previous := body.get("previous_response_id"):
            if previous not in self._histories:
                message = f"Previous response with id '{previous}' not found."
                raise ApiError(400, message, "previous_response_id", "previous_response_not_found")
            return self._histories[previous]
        conversation = _conversation_id(body)
        return [] if conversation is None else self._conversations.known_items(conversation)

    # --- response ---

    def whole(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """Return the finished response and store it."""
        response = _in_progress(body)
        response["output"] = output_items(reply, body.get("include") or [])
        return self._finished(response, body, reply)

    def events(self, body: dict[str, Any], reply: Reply) -> Iterator[bytes]:
        """Stream the response as events."""
        for number, data in enumerate(self._events(body, reply)):
            yield event({**data, "sequence_number": number}, data["type"])

    def _events(self, body: dict[str, Any], reply: Reply) -> Iterator[Event]:
        response = _in_progress(body)
        yield {"type": "response.created", "response": response}
        yield {"type": "response.in_progress", "response": response}
        output = output_items(reply, body.get("include") or [])
        for index, item in enumerate(output):
            yield from item_events(item, index, reply)
        done = {**response, "output": output}
        if reply.error is None:
            done = self._finished(done, body, reply)
        else:
            done |= {"status": "failed", "error": _error_fields(reply.error)}
        yield {"type": f"response.{done['status']}", "response": done}

    def _finished(self, response: dict[str, Any], body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        response |= {"status": "completed", "usage": _usage(reply.usage_for(self.prompt(body)))}
        if reply.stop != "end":
            reason = {"reason": _INCOMPLETE[reply.stop]}
            response |= {"status": "incomplete", "incomplete_details": reason}
        self._remember(response, body)
        return response

    def _remember(self, response: dict[str, Any], body: dict[str, Any]) -> None:
        new = [*_input_items(body), *response["output"]]
        if response["store"]:
            self._responses[response["id"]] = response
            self._histories[response["id"]] = [*self._earlier(body), *new]
        if (conversation := _conversation_id(body)) is not None:
            self._conversations.append(conversation, new)


def _check_item(item: Item, where: str) -> None:
    for name in _REQUIRED.get(type_of(item) or "message", ()):
        if item.get(name) is None:
            message = f"Missing required parameter: '{where}.{name}'."
            raise ApiError(400, message, f"{where}.{name}", "missing_required_parameter")


def _check_whole(items: list[Item]) -> None:
    """Reject a call without output, an output without call, and reasoning without the item it led to."""
    for orphan in find_orphans(items, spare_newest_turn=False):
        item = items[orphan]
        message = f"Item '{item.get('id')}' of type 'reasoning' came without its required following item."
        if is_call(item):
            message = f"No tool output found for function call {item.get('call_id')}."
        elif is_output(item):
            message = f"No tool call found for function call output with call_id {item.get('call_id')}."
        raise ApiError(400, message, "input")


def _input_items(body: dict[str, Any]) -> list[Item]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _conversation_id(body: dict[str, Any]) -> str | None:
    given = body.get("conversation")
    return given.get("id") if isinstance(given, dict) else given


def _in_progress(body: dict[str, Any]) -> dict[str, Any]:
    conversation = _conversation_id(body)
    return {
        "id": make_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "conversation": None if conversation is None else {"id": conversation},
        "error": None,
        "incomplete_details": None,
        "model": body["model"],
        "output": [],
        "service_tier": "default",
        "usage": None,
        **{name: body.get(name, default) for name, default in _ECHOED.items()},
    }


def _error_fields(error: ApiError) -> dict[str, Any]:
    known = "rate_limit_exceeded" if error.status == 429 else "server_error"
    return {"code": error.code or known, "message": error.message}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
