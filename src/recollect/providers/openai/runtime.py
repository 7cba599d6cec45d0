"""A thin layer around the SDK's Runner: one way of running, streamed, whoever wants to see the stream."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ModelRefusedError
from ...extras import require_extra
from ...items import ModelUsage
from ...strategies.session import StrategySession
from ..values import ChatEvent, ToolCall
from .context import RunContext
from .offline_answers import quoted_in_answer
from .options import ChatOptions
from .registry import AgentDescriptor, AgentRegistry
from .run_config import make_client, make_model_provider, make_run_config
from .streaming import EventReader
from .tool_calls import tool_calls_of
from .turnstile import Turnstile
from .usage import usage_of

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
            from .pacing import paced_http_client

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
            model=self._options.model if offline is None else _offline_model(offline),
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


def _offline_model(recall: CountedRecall) -> Any:
    from .offline import OfflineModel

    return OfflineModel(recall)


async def _ended(task: "asyncio.Task[Any] | None") -> None:
    """Wait for a task, whatever it ends with: the stream has told that."""
    if task is not None:
        await asyncio.wait([task])
