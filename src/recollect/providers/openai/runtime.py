"""Runs of the Agents SDK: how one is started, and the events that it streams."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ModelRefusedError
from ...extras import require_extra
from ...items import ModelUsage
from ...models.values import MOST_TOKENS
from ...strategies.session import StrategySession
from ..errors import told_failure
from ..values import ChatEvent, ChatReply, ToolCall
from .context import RunContext
from .offline import OfflineModel, quoted_in_answer
from .options import ChatOptions, make_client, make_model_provider, make_run_config
from .registry import AgentDescriptor, AgentRegistry
from .turnstile import Turnstile, paced_http_client

if TYPE_CHECKING:
    from agents import ModelProvider, RunConfig
    from openai import AsyncOpenAI

OFFLINE = "offline"


@dataclass
class Run:
    """A run that goes on, or has ended; what it has cost is known at any time."""

    result: Any
    agent: str
    model_of: Callable[[str], str]
    injected: int = 0
    """How many memories stand in the instructions."""
    offline: "CountedRecall | None" = None

    @property
    def usage(self) -> ModelUsage:
        """What it has cost so far."""
        return usage_of(self.result)

    @property
    def text(self) -> str:
        """What the agent said in the end."""
        said = self.result.final_output
        return said if isinstance(said, str) else "" if said is None else str(said)

    @property
    def last_agent(self) -> str:
        """The agent that answered."""
        return str(self.result.last_agent.name)

    @property
    def model(self) -> str:
        """The model that answered."""
        return self.model_of(self.last_agent)

    @property
    def memories_used(self) -> int:
        """How many memories the model was shown, or the offline agent has quoted."""
        return self.offline.quoted if self.offline and self.model == OFFLINE else self.injected

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that were called."""
        return tool_calls_of(self.result.new_items)

    @property
    def response_id(self) -> str | None:
        """The id of the last response, if the provider gave one."""
        given = self.result.last_response_id
        return given if isinstance(given, str) and not given.startswith("__") else None

    async def events(self) -> AsyncIterator[ChatEvent]:
        """What happens, until the run has ended; raises what ended it, if that was no answer."""
        reader = EventReader(self.agent)
        try:
            async for event in self.result.stream_events():
                told = reader.read(event)
                if told is not None:
                    yield told
        except BaseException:
            await self._end(self.result.run_loop_task)
            raise
        # The last items are stored when the stream has ended, and not before.
        await _ended(self.result.run_loop_task)

    async def _end(self, loop: "asyncio.Task[Any] | None") -> None:
        """Leave nothing of the run behind: when this returns, it writes no more."""
        if loop is not None and not loop.done():
            loop.cancel()
        await _ended(loop)


@dataclass
class CountedRecall:
    """Recalls for the agent that answers from memory, and counts what its answer quotes."""

    context: RunContext
    quoted: int = 0

    async def __call__(self, question: str) -> Any:
        """What is remembered about a question."""
        found = await self.context.context.recall(question)
        entries, turns = quoted_in_answer(question, found)
        self.quoted += len(entries) + len(turns)
        return found


class AgentRuntime:
    """Runs agents of a registry, on the configured models or on none."""

    def __init__(self, registry: AgentRegistry, options: ChatOptions) -> None:
        self.registry = registry
        self._options = options
        self.turnstile = Turnstile()
        """What turns pass where they would hold up the event loop."""
        self._agents = require_extra("agents", "agents", "chat")
        self._client: AsyncOpenAI | None = None
        self._models: ModelProvider | None = None
        self._configs: dict[ModelProvider | None, RunConfig] = {}

    def warm_up(self) -> None:
        """Load and make what models are asked with, so that no turn waits for that; nothing is asked yet."""
        if any(self.model_of(name) != OFFLINE for name in self.registry.names()):
            with contextlib.suppress(ModelRefusedError):  # there is no key: each turn says so
                self._model_provider()

    def model_of(self, name: str) -> str:
        """The model of an agent; `offline` where it has none."""
        return self.registry.get(name).model or self._options.model or OFFLINE

    def client(self) -> "AsyncOpenAI":
        """The client of the endpoint, made when it is first needed."""
        if self._client is None:
            self._client = make_client(self._options.endpoint, paced_http_client(self.turnstile))
        return self._client

    def start(self, descriptor: AgentDescriptor, context: RunContext, session: StrategySession) -> Run:
        """Start a run on what the session holds: the message of the user is its last item already."""
        # Also an agent with a model may hand over to one without.
        offline = CountedRecall(context) if self._options.model is None else None
        is_offline = self.model_of(descriptor.name) == OFFLINE
        agent = self.registry.build(
            descriptor.name,
            instructions=context.instructions_for,
            model=self._options.model if offline is None else OfflineModel(offline),
        )
        limit = {} if descriptor.max_turns is None else {"max_turns": descriptor.max_turns}
        result = self._agents.Runner.run_streamed(
            agent,
            [],
            context=context.context,
            session=session,
            run_config=self._run_config(None if is_offline else self._model_provider()),
            **limit,
        )
        return Run(result, descriptor.name, self.model_of, context.memories_used, offline)

    async def aclose(self) -> None:
        """Close what was opened to ask models."""
        client, self._client, self._models = self._client, None, None
        if client is not None:
            await client.close()

    def _run_config(self, models: "ModelProvider | None") -> "RunConfig":
        """One for all runs: to make it takes the SDK longer than all else at the start of a run."""
        if self._configs.get(models) is None:
            self._configs[models] = make_run_config(models)
        return self._configs[models]

    def _model_provider(self) -> "ModelProvider":
        if self._models is None:
            self._models = make_model_provider(self.client(), self._options.endpoint)
        return self._models


async def _ended(task: "asyncio.Task[Any] | None") -> None:
    """Wait for a task, whatever it ends with: the stream has told that."""
    if task is not None:
        await asyncio.wait([task])


_TOOL_EVENTS = {"tool_called": "tool.called", "tool_output": "tool.output"}


class EventReader:
    """Reads the events of one run; what nobody needs to know of gives none."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._names: dict[str, str] = {}

    def read(self, event: Any) -> ChatEvent | None:
        """The event of the turn that an event of the SDK is."""
        if event.type == "raw_response_event":
            return _delta_of(event.data)
        if event.type == "agent_updated_stream_event":
            return self._changed(event.new_agent.name)
        return self._tool_event(event)

    def _changed(self, agent: str) -> ChatEvent | None:
        if agent == self._agent:
            return None
        self._agent = agent
        return ChatEvent("agent.changed", {"agent": agent, "agent_id": agent})

    def _tool_event(self, event: Any) -> ChatEvent | None:
        call = tool_call_of(event.item) if event.name in _TOOL_EVENTS else None
        if call is None:
            return None
        if event.name == "tool_called":
            self._names[call.call_id] = call.name
            return ChatEvent("tool.called", _told(call))
        named = ToolCall(call.call_id, self._names.get(call.call_id, call.name))
        return ChatEvent("tool.output", _told(named))


def _told(call: ToolCall) -> dict[str, Any]:
    return {"call_id": call.call_id, "name": call.name}


def _delta_of(data: Any) -> ChatEvent | None:
    if data.type != "response.output_text.delta" or not data.delta:
        return None
    return ChatEvent("text.delta", {"text": data.delta})


def started_event(turn_id: str, conversation_id: str, agent: str, model: str) -> ChatEvent:
    """The event of a turn that begins."""
    about = {"turn_id": turn_id, "conversation_id": conversation_id}
    return ChatEvent("turn.started", {**about, "agent": agent, "agent_id": agent, "model": model})


def completed_event(reply: ChatReply, session_id: str) -> ChatEvent:
    """The event of a turn that has an answer, with all of it."""
    return ChatEvent("turn.completed", reply.to_dict(session_id))


def failed_event(turn_id: str, error: Exception) -> ChatEvent:
    """The event of a turn that has no answer."""
    code, detail = told_failure(error)
    return ChatEvent("turn.failed", {"turn_id": turn_id, "code": code, "detail": detail})


def tool_call_of(item: Any) -> ToolCall | None:
    """The call that an item of a run is, or answers; `None` where it is neither, or has no id."""
    call_id = _field(item.raw_item, "call_id") or _field(item.raw_item, "id")
    if not isinstance(call_id, str):
        return None
    name = _field(item.raw_item, "name") or _field(item.raw_item, "type")
    return ToolCall(call_id, str(name))


def tool_calls_of(items: Iterable[Any]) -> tuple[ToolCall, ...]:
    """The calls of tools in a run, in their order; handing over to another agent is none."""
    calls = (tool_call_of(item) for item in items if item.type == "tool_call_item")
    return tuple(call for call in calls if call is not None)


def _field(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)


def usage_of(result: Any) -> ModelUsage:
    """What a run of the SDK has cost so far."""
    usage = result.context_wrapper.usage
    counts = (usage.requests or 0, usage.input_tokens or 0, usage.output_tokens or 0)
    return ModelUsage(*(min(count, MOST_TOKENS) for count in counts))
