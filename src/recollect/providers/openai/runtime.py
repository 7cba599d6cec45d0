"""Runs of the Agents SDK: how one is started, and the events that it streams."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...extras import require_extra
from ...items import ModelUsage
from ...models.values import MOST_TOKENS
from ...sql.garbage import keep_new_objects
from ..errors import ModelNotConfiguredError, describe_failure
from ..turnstile import Turnstile
from ..values import ChatEvent, ChatReply, ToolCall
from .context import RunContext
from .options import OFFLINE as OFFLINE
from .options import ChatOptions, key_of, make_client, make_model_provider, make_run_config
from .registry import AgentDescriptor, AgentRegistry
from .run_session import RunSession

if TYPE_CHECKING:
    from agents import ModelProvider, RunConfig
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)


@dataclass
class AgentRun:
    """A run of the SDK, while it goes on and after its end."""

    result: Any
    agent: str
    model_of: Callable[[str], str]
    injected: int = 0
    """How many memories are in the prompt."""
    offline: "CountedRecall | None" = None

    @property
    def usage(self) -> ModelUsage:
        """The cost so far."""
        usage = self.result.context_wrapper.usage
        counts = (usage.requests or 0, usage.input_tokens or 0, usage.output_tokens or 0)
        return ModelUsage(*(min(count, MOST_TOKENS) for count in counts))

    @property
    def cached_tokens(self) -> int:
        """The input tokens so far that the provider had cached."""
        details = getattr(self.result.context_wrapper.usage, "input_tokens_details", None)
        return min(getattr(details, "cached_tokens", None) or 0, MOST_TOKENS)

    @property
    def text(self) -> str:
        """The final output of the agent as text."""
        output = self.result.final_output
        return output if isinstance(output, str) else "" if output is None else str(output)

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
        """How many memories the model has seen, or the offline agent has quoted."""
        return self.offline.quoted if self.offline and self.model == OFFLINE else self.injected

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools in order. A handoff to another agent is not one."""
        calls = (tool_call_of(item) for item in self.result.new_items if item.type == "tool_call_item")
        return tuple(call for call in calls if call is not None)

    @property
    def response_id(self) -> str | None:
        """The id of the last response; `None` if the provider gave none."""
        given = self.result.last_response_id
        return given if isinstance(given, str) and not given.startswith("__") else None

    async def events(self) -> AsyncIterator[ChatEvent]:
        """The events until the run has ended. Raises the error that ended it, if there is one."""
        reader = EventReader(self.agent)
        try:
            async for event in self.result.stream_events():
                found = reader.read(event)
                if found is not None:
                    yield found
        except BaseException:
            await self._wait_for_end(cancel=True)
            raise
        # The SDK stores the last items after the end of the stream.
        await self._wait_for_end()

    async def _wait_for_end(self, cancel: bool = False) -> None:
        """Wait for the task of the run, which writes nothing after this. The stream has raised its error."""
        task: asyncio.Task[Any] | None = self.result.run_loop_task
        if task is None:
            return
        if cancel and not task.done():
            task.cancel()
        await asyncio.wait([task])


@dataclass
class CountedRecall:
    """The recall of the offline agent, which counts the hits that its answer quotes."""

    context: RunContext
    quoted: int = 0

    async def __call__(self, question: str) -> Any:
        """The memories about a question."""
        from .offline import quoted_in_answer

        found = await self.context.context.recall(question)
        entries, turns = quoted_in_answer(question, found)
        self.quoted += len(entries) + len(turns)
        return found


# Their packages load these modules at their first use, which would block the event loop.
_SDK_MODULES = (
    "agents",
    "anyio._backends._asyncio",
    "httpcore2._backends.anyio",
    "openai.resources.chat.chat",
    "openai.resources.chat.completions.completions",
    "openai.resources.conversations",
    "openai.resources.responses.responses",
)


class AgentRuntime:
    """Runs the agents of a registry on the configured models, or offline.

    The SDK takes seconds to import. It is loaded before the first turn, in a thread: `load`.
    """

    def __init__(self, registry: AgentRegistry, options: ChatOptions) -> None:
        self.registry = registry
        self._options = options
        self.turnstile = Turnstile()
        """Turns pass it before work that blocks the event loop."""
        self._loading = asyncio.Lock()
        self._is_loaded = False
        self._client: AsyncOpenAI | None = None
        self._models: ModelProvider | None = None
        self._configs: dict[ModelProvider | None, RunConfig] = {}

    async def load(self) -> None:
        """Import the SDK and create the client of the model, in a thread. This sends no request."""
        async with self._loading:
            if not self._is_loaded:
                await asyncio.to_thread(self._load)
                self._is_loaded = True

    @property
    def has_model(self) -> bool:
        """Whether an agent has a model."""
        return any(self.model_of(name) != OFFLINE for name in self.registry.names())

    @property
    def lacks_key(self) -> bool:
        """Whether an agent has a model, but the endpoint's API key is missing."""
        return self.has_model and key_of(self._options.endpoint) is None

    def _load(self) -> None:
        require_extra("agents", "agents", "chat")
        with keep_new_objects():
            for name in (*_SDK_MODULES, f"{__package__}.offline"):
                import_module(name)
            if self.has_model:
                with contextlib.suppress(ModelNotConfiguredError):  # each turn raises this error itself
                    self._model_provider()
            self._warm_up()

    def _warm_up(self) -> None:
        from .warm_up import warm_up

        try:
            warm_up(self._options.endpoint if self.has_model else None)
        except Exception as error:  # noqa: BLE001 - a first turn that fails, too, has its own error
            logger.warning("warm-up of a chat failed (%s)", type(error).__name__)

    def model_of(self, name: str) -> str:
        """The model of an agent; `offline` if it has none."""
        return self.registry.get(name).model or self._options.model or OFFLINE

    def client(self) -> "AsyncOpenAI":
        """The client of the endpoint, created at its first use."""
        if self._client is None:
            from .client import ModelClient, paced_http_client

            self._client = make_client(
                self._options.endpoint, paced_http_client(self.turnstile), kind=ModelClient
            )
        return self._client

    def start(self, descriptor: AgentDescriptor, context: RunContext, session: RunSession) -> AgentRun:
        """Start a run on the items of a session, the last of which is the message of the user."""
        from agents import Runner

        from .offline import OfflineModel

        # An agent that has a model may hand over to one that has none.
        offline = CountedRecall(context) if self._options.model is None else None
        is_offline = self.model_of(descriptor.name) == OFFLINE
        agent = self.registry.build(
            descriptor.name,
            instructions=context.instructions_for,
            model=self._options.model if offline is None else OfflineModel(offline),
        )
        limit: dict[str, Any] = {} if descriptor.max_turns is None else {"max_turns": descriptor.max_turns}
        result = Runner.run_streamed(
            agent,
            [],
            context=context.context,
            session=session,
            run_config=self._run_config(None if is_offline else self._model_provider()),
            **limit,
        )
        return AgentRun(result, descriptor.name, self.model_of, context.remembered.memories_used, offline)

    async def aclose(self) -> None:
        """Close the client."""
        client, self._client, self._models = self._client, None, None
        if client is not None:
            await client.close()

    def _run_config(self, models: "ModelProvider | None") -> "RunConfig":
        """The configuration that all runs share, since creating it is the slowest step of starting a run."""
        if self._configs.get(models) is None:
            self._configs[models] = make_run_config(models)
        return self._configs[models]

    def _model_provider(self) -> "ModelProvider":
        if self._models is None:
            self._models = make_model_provider(self.client(), self._options.endpoint)
        return self._models


_TOOL_EVENTS = {"tool_called": "tool.called", "tool_output": "tool.output"}


class EventReader:
    """Translates the events of the SDK in one run into events of a turn."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._names: dict[str, str] = {}

    def read(self, event: Any) -> ChatEvent | None:
        """The event of the turn; `None` for an event of the SDK that has no counterpart."""
        if event.type == "raw_response_event":
            is_text = event.data.type == "response.output_text.delta" and event.data.delta
            return ChatEvent("text.delta", {"text": event.data.delta}) if is_text else None
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
            return ChatEvent("tool.called", asdict(call))
        named = ToolCall(call.call_id, self._names.get(call.call_id, call.name))
        return ChatEvent("tool.output", asdict(named))


def started_event(turn_id: str, conversation_id: str, agent: str, model: str) -> ChatEvent:
    """The first event of a turn."""
    ids = {"turn_id": turn_id, "conversation_id": conversation_id}
    return ChatEvent("turn.started", {**ids, "agent": agent, "agent_id": agent, "model": model})


def completed_event(reply: ChatReply, session_id: str) -> ChatEvent:
    """The last event of a turn that has an answer, with the whole reply."""
    return ChatEvent("turn.completed", reply.to_dict(session_id))


def failed_event(turn_id: str, error: Exception) -> ChatEvent:
    """The last event of a turn that has no answer."""
    code, detail = describe_failure(error)
    return ChatEvent("turn.failed", {"turn_id": turn_id, "code": code, "detail": detail})


def tool_call_of(item: Any) -> ToolCall | None:
    """The call that an item of a run makes or answers; `None` if it does neither, or has no id."""
    call_id = _field(item.raw_item, "call_id") or _field(item.raw_item, "id")
    if not isinstance(call_id, str):
        return None
    name = _field(item.raw_item, "name") or _field(item.raw_item, "type")
    return ToolCall(call_id, str(name))


def _field(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
