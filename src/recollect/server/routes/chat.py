"""Chat with an agent that remembers: one response, or a stream of events."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request, Response

from ...items import estimate_text_tokens
from ...memory.conversation import Conversation
from ...memory.store import MemoryStore
from ...providers.turn_events import TurnEvents
from ...providers.values import ChatEvent, ChatTurn
from ..access.budget import Reservation
from ..dependencies import OnceDep, Reader, ServiceDep, Writer, WriteStore, make_router
from ..error_handlers import turn_code
from ..event_stream import EventStream, encode_event, encode_events
from ..idempotency import Ids
from ..problems import Problem, translate_input_errors
from ..schemas.base import json_response
from ..schemas.chat import STREAM, AgentList, ChatRequest, ChatResponse, serialize_agent
from ..schemas.problems import problems
from ..service import Service
from ..telemetry.spans import ChatSpan, chat_span
from .shared import CLOSED, require_found, set_audit_target

router = make_router("chat")


@router.get(
    "/v1/agents",
    operation_id="agents.list",
    summary="List the agents",
    response_model=AgentList,
    responses=problems("read"),
)
async def list_agents(_: Reader, service: ServiceDep) -> Response:
    """The agents with their names, descriptions and tools."""
    return json_response({"agents": [serialize_agent(agent) for agent in service.provider.agents()]})


@router.post(
    "/v1/chat",
    operation_id="chat.run",
    summary="Send a message to an agent",
    response_model=ChatResponse,
    responses=problems("chat"),
)
async def chat(
    body: ChatRequest,
    request: Request,
    caller: Writer,
    store: WriteStore,
    service: ServiceDep,
    once: OnceDep,
) -> Response:
    """The answer is stored in the conversation before it is returned. Turns of a conversation run one by one.

    Without a configured model, the built-in offline agent answers by quoting what is remembered.
    """
    builder = TurnBuilder(body, caller.tenant, store, service)
    replies: list[dict[str, Any]] = []

    async def make(ids: Ids) -> dict[str, Any]:
        turn = await builder.build(ids)
        ids.about(turn.conversation.user_id)
        set_audit_target(request, "turn", turn.turn_id)
        replies.append(await _run(service, turn))
        return _ids_of(turn)

    made = await once(make)
    if not replies:  # an earlier request ran the turn: return the stored answer
        set_audit_target(request, "turn", made["turn_id"])
        turn = await builder.rebuild(made["conversation_id"], made["turn_id"])
        replies.append(await _run(service, turn))
    return json_response(replies[0])


async def _run(service: Service, turn: ChatTurn) -> dict[str, Any]:
    with chat_span(agent=turn.agent, conversation_id=turn.conversation.conversation_id) as span:
        with translate_input_errors():
            reply = await service.provider.run(turn)
        body = reply.to_dict(turn.conversation.session_id)
        _set_usage(span, body)
    return body


def _set_usage(span: ChatSpan, reply: Mapping[str, Any]) -> None:
    span.set_usage(reply["usage"]["input_tokens"], reply["usage"]["output_tokens"], reply["model"])


class _StartedTurn(NamedTuple):
    """A running turn and its events."""

    turn: ChatTurn
    events: TurnEvents


async def _start(
    body: ChatRequest,
    request: Request,
    caller: Writer,
    store: WriteStore,
    service: ServiceDep,
    once: OnceDep,
) -> _StartedTurn:
    """Start the turn before the stream starts, so that an invalid request gets a problem document."""
    builder = TurnBuilder(body, caller.tenant, store, service)
    turns: list[ChatTurn] = []

    async def make(ids: Ids) -> dict[str, Any]:
        turns.append(await builder.build(ids))
        ids.about(turns[0].conversation.user_id)
        return _ids_of(turns[0])

    made = await once(make)
    set_audit_target(request, "turn", made["turn_id"])
    turn = turns[0] if turns else await builder.rebuild(made["conversation_id"], made["turn_id"])
    return _StartedTurn(turn, await service.provider.start(turn))


def _ids_of(turn: ChatTurn) -> dict[str, Any]:
    return {"turn_id": turn.turn_id, "conversation_id": turn.conversation.conversation_id}


@router.post(
    "/v1/chat/stream",
    operation_id="chat.stream",
    summary="Send a message to an agent and stream its answer",
    response_class=EventStream,
    responses={200: STREAM, **problems("chat")},
)
async def chat_stream(started: Annotated[_StartedTurn, Depends(_start)], service: ServiceDep) -> Response:
    """Server-sent events: `turn.started`, `text.delta`, `tool.called`, `tool.output`, `agent.changed`, and at
    the end `turn.completed` with the whole answer, or `turn.failed` with a code.

    If the client disconnects, the turn continues and its answer is stored in the conversation.
    """
    return EventStream(_stream(started, service))


async def _stream(started: _StartedTurn, service: Service) -> AsyncGenerator[bytes]:
    agent, conversation_id = started.turn.agent, started.turn.conversation.conversation_id
    with service.metrics.open_stream(), chat_span(agent=agent, conversation_id=conversation_id) as span:
        async for chunk in encode_events(started.events.read, partial(_encode, span)):
            yield chunk


def _encode(span: ChatSpan, event: ChatEvent) -> bytes:
    data = event.data
    if event.kind == "turn.completed":
        _set_usage(span, data)
    elif event.kind == "turn.failed":
        span.set_failure(data["code"])
        data = {**data, "code": turn_code(data["code"])}
    return encode_event(event.kind, data)


class TurnBuilder:
    """Turns a chat request into a turn of a conversation."""

    def __init__(self, body: ChatRequest, tenant: str, store: MemoryStore, service: Service) -> None:
        self._body = body
        self._tenant = tenant
        self._store = store
        self._service = service

    async def build(self, ids: Ids) -> ChatTurn:
        """A turn in the conversation that the request names, or in a new one, with reserved tokens."""
        wanted = self._body.conversation_id
        if not ids.are_new:  # an earlier attempt was interrupted, perhaps after the answer was stored
            outline = await self._outline(wanted or ids("conversation"))
            if outline is not None:
                return await self._resume(outline, ids("turn"))
        async with self._reserved() as reservation:
            if wanted is None:
                return self._make(await self._open(ids("conversation")), ids("turn"), reservation)
            outline = require_found(await self._outline(wanted), "conversation")
            self._check(outline)
            return self._make(Conversation.from_dict(outline), ids("turn"), reservation)

    async def rebuild(self, conversation_id: str, turn_id: str) -> ChatTurn:
        """The turn that an earlier request with the same key made."""
        return await self._resume(
            require_found(await self._outline(conversation_id), "conversation"), turn_id
        )

    async def _resume(self, outline: Mapping[str, Any], turn_id: str) -> ChatTurn:
        """A stored answer is returned even if the conversation is closed or the budget is used up by now."""
        turn = self._make(Conversation.from_dict(outline), turn_id)
        if await self._service.provider.is_answered(turn):
            return turn
        async with self._reserved() as reservation:
            self._check(outline)
            return replace(turn, reservation=reservation)

    @asynccontextmanager
    async def _reserved(self) -> AsyncIterator[Reservation]:
        """Reserve tokens for a turn. An error before the provider takes the turn releases them."""
        message_tokens = estimate_text_tokens(self._body.message)
        reservation = await self._service.budget.reserve(self._tenant, at_least=message_tokens)
        try:
            yield reservation
        except BaseException:
            await reservation.release()
            raise

    def _make(
        self, conversation: Conversation, turn_id: str, reservation: Reservation | None = None
    ) -> ChatTurn:
        body = self._body
        return ChatTurn(
            self._store,
            self._tenant,
            conversation,
            self._agent(conversation),
            body.message,
            turn_id,
            None if body.memory_strategy is None else body.memory_strategy.to_config(),
            body.memory_injection,
            reservation,
        )

    async def _outline(self, conversation_id: str) -> dict[str, Any] | None:
        with translate_input_errors():
            return await self._store.get_conversation_outline(conversation_id)

    def _check(self, outline: Mapping[str, Any]) -> None:
        """Refuse a closed conversation, and one of another user."""
        if outline["closed_at"] is not None:
            raise Problem("conversation_closed", CLOSED)
        if self._body.user_id not in (None, outline["user_id"]):
            raise Problem("conflict", "The conversation belongs to another user.")

    async def _open(self, conversation_id: str) -> Conversation:
        body = self._body
        if body.user_id is None:
            error = {"field": "body.user_id", "message": "is required without conversation_id"}
            raise Problem(
                "validation_failed", "body.user_id: is required without conversation_id", errors=[error]
            )
        agent = self._known(body.wanted_agent or self._service.settings.chat.default_agent)
        with translate_input_errors():
            return await self._store.open_conversation(
                agent, body.user_id, session_id=body.session_id, conversation_id=conversation_id
            )

    def _agent(self, conversation: Conversation) -> str:
        """The requested agent; else the conversation's own if it is configured; else the default agent."""
        if self._body.wanted_agent is not None:
            return self._known(self._body.wanted_agent)
        own = conversation.agent_id
        known = {agent.name for agent in self._service.provider.agents()}
        return own if own in known else self._known(self._service.settings.chat.default_agent)

    def _known(self, name: str) -> str:
        names = sorted(agent.name for agent in self._service.provider.agents())
        if name not in names:
            field = "agent" if self._body.agent_id is None else "agent_id"
            error = {"field": f"body.{field}", "message": f"must be one of {', '.join(names)}"}
            raise Problem(
                "validation_failed",
                f"There is no agent with this name. {field} {error['message']}.",
                errors=[error],
            )
        return name
