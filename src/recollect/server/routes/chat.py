"""Chat: a message to an agent that remembers, answered whole or as it is spoken."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from ...items import estimate_text_tokens
from ...memory.conversation import Conversation
from ...memory.store import MemoryStore
from ...providers.values import ChatEvent, ChatTurn
from ..access.budget import Reservation
from ..dependencies import OnceDep, Reader, ServiceDep, Writer, WriteStore, make_router
from ..error_handlers import turn_code
from ..idempotency import Ids
from ..problems import Problem, translate_input_errors
from ..schemas.base import json_response
from ..schemas.chat import STREAM, AgentList, ChatRequest, ChatResponse, serialize_agent
from ..schemas.problems import problems
from ..service import Service
from ..telemetry.spans import ChatSpan, chat_span
from .shared import require_found, set_audit_target

router = make_router("chat")


@router.get(
    "/v1/agents",
    operation_id="agents.list",
    summary="List the agents that can be talked to",
    response_model=AgentList,
    responses=problems("read"),
)
async def list_agents(_: Reader, service: ServiceDep) -> Response:
    """Their names, what they are for, and what they can do."""
    return json_response({"agents": [serialize_agent(agent) for agent in service.provider.agents()]})


@router.post(
    "/v1/chat",
    operation_id="chat.run",
    summary="Say something to an agent, and get its answer",
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
    """The answer is kept in the conversation before it is given. Turns of one conversation go one by one.

    With no model configured, the built-in offline agent answers by quoting what is remembered.
    """
    asked = Asked(body, caller.tenant, store, service)
    answers: list[dict[str, Any]] = []

    async def make(ids: Ids) -> dict[str, Any]:
        turn = await asked.turn(ids)
        ids.about(turn.conversation.user_id)
        set_audit_target(request, "turn", turn.turn_id)
        answers.append(await _run(service, turn))
        return _ids_of(turn)

    made = await once(make)
    if not answers:  # it was run before: this is what was kept of it
        set_audit_target(request, "turn", made["turn_id"])
        turn = await asked.turn_again(made["conversation_id"], made["turn_id"])
        answers.append(await _run(service, turn))
    return json_response(answers[0])


async def _run(service: Service, turn: ChatTurn) -> dict[str, Any]:
    with chat_span(agent=turn.agent, conversation_id=turn.conversation.conversation_id) as span:
        with translate_input_errors():
            reply = await service.provider.run(turn)
        told = reply.to_dict(turn.conversation.session_id)
        _tell_use(span, told)
    return told


def _tell_use(span: ChatSpan, told: Mapping[str, Any]) -> None:
    span.set_usage(told["usage"]["input_tokens"], told["usage"]["output_tokens"], told["model"])


class _Started(NamedTuple):
    """A turn that has begun, and what it tells."""

    turn: ChatTurn
    events: AsyncIterator[ChatEvent]


async def _start(
    body: ChatRequest,
    request: Request,
    caller: Writer,
    store: WriteStore,
    service: ServiceDep,
    once: OnceDep,
) -> _Started:
    """Begin the turn: whatever is wrong with the request is told before the stream begins."""
    asked = Asked(body, caller.tenant, store, service)
    turns: list[ChatTurn] = []

    async def make(ids: Ids) -> dict[str, Any]:
        turns.append(await asked.turn(ids))
        ids.about(turns[0].conversation.user_id)
        return _ids_of(turns[0])

    made = await once(make)
    set_audit_target(request, "turn", made["turn_id"])
    turn = turns[0] if turns else await asked.turn_again(made["conversation_id"], made["turn_id"])
    return _Started(turn, await service.provider.start(turn))


def _ids_of(turn: ChatTurn) -> dict[str, Any]:
    return {"turn_id": turn.turn_id, "conversation_id": turn.conversation.conversation_id}


@router.post(
    "/v1/chat/stream",
    operation_id="chat.stream",
    summary="Say something to an agent, and get its answer as it is spoken",
    response_class=EventSourceResponse,
    responses={200: STREAM, **problems("chat")},
)
async def chat_stream(
    started: Annotated[_Started, Depends(_start)], service: ServiceDep
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `turn.started`, `text.delta`, `tool.called`, `tool.output`, `agent.changed`, and at
    the end `turn.completed` with the whole answer, or `turn.failed` with a code.

    The turn goes on if the reader hangs up: what was said is in the conversation.
    """
    agent, conversation_id = started.turn.agent, started.turn.conversation.conversation_id
    with service.metrics.open_stream(), chat_span(agent=agent, conversation_id=conversation_id) as span:
        async for event in started.events:
            data = event.data
            if event.kind == "turn.completed":
                _tell_use(span, data)
            elif event.kind == "turn.failed":
                span.set_failure(data["code"])
                data = {**data, "code": turn_code(data["code"])}
            yield ServerSentEvent(event=event.kind, data=data)


class Asked:
    """What was asked, and how it becomes a turn of a conversation."""

    def __init__(self, body: ChatRequest, tenant: str, store: MemoryStore, service: Service) -> None:
        self._body = body
        self._tenant = tenant
        self._store = store
        self._service = service

    async def turn(self, ids: Ids) -> ChatTurn:
        """The turn in the conversation that is named, or in a new one."""
        wanted = self._body.conversation_id
        if not ids.are_new:  # an earlier attempt broke off, perhaps only when there was an answer
            told = await self._outline(wanted or ids("conversation"))
            if told is not None:
                return await self._turn_in(told, ids("turn"))
        async with self._reserved() as reservation:
            if wanted is None:
                return self._made(await self._open(ids("conversation")), ids("turn"), reservation)
            told = require_found(await self._outline(wanted), "conversation")
            self._check(told)
            return self._made(Conversation.from_dict(told), ids("turn"), reservation)

    async def turn_again(self, conversation_id: str, turn_id: str) -> ChatTurn:
        """A turn that was asked for before, in the conversation that it was in."""
        return await self._turn_in(
            require_found(await self._outline(conversation_id), "conversation"), turn_id
        )

    async def _turn_in(self, told: Mapping[str, Any], turn_id: str) -> ChatTurn:
        """Where there is an answer, it is given whatever has become of the conversation and the budget."""
        turn = self._made(Conversation.from_dict(told), turn_id)
        if await self._service.provider.is_answered(turn):
            return turn
        async with self._reserved() as reservation:
            self._check(told)
            return replace(turn, reservation=reservation)

    @asynccontextmanager
    async def _reserved(self) -> AsyncIterator[Reservation]:
        """Tokens for a turn, which are given back if there is an error before the provider has it."""
        message_tokens = estimate_text_tokens(self._body.message)
        reservation = await self._service.budget.reserve(self._tenant, at_least=message_tokens)
        try:
            yield reservation
        except BaseException:
            await reservation.release()
            raise

    def _made(
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

    def _check(self, told: Mapping[str, Any]) -> None:
        """Whether the conversation can go on."""
        if told["closed_at"] is not None:
            raise Problem("conversation_closed", "nothing can be added to a conversation that is closed")
        if self._body.user_id not in (None, told["user_id"]):
            raise Problem("conflict", "the conversation is with another user")

    async def _open(self, conversation_id: str) -> Conversation:
        body = self._body
        if body.user_id is None:
            error = {"field": "body.user_id", "message": "must be given where conversation_id is not"}
            raise Problem("validation_failed", "user_id is missing", errors=[error])
        agent = self._known(body.wanted_agent or self._service.settings.chat.default_agent)
        with translate_input_errors():
            return await self._store.open_conversation(
                agent, body.user_id, session_id=body.session_id, conversation_id=conversation_id
            )

    def _agent(self, conversation: Conversation) -> str:
        """The agent that is asked for; else the conversation's own, if it is one of those here."""
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
            raise Problem("validation_failed", "there is no agent of this name", errors=[error])
        return name
