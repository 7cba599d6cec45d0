"""The chat provider on the OpenAI Agents SDK."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ...memory.pipeline.token_meter import GuardedMeter, TokenMeter
from ...sessions.events import EventLog
from ...sql.database import SQLStore, open_on_engine
from ...strategies.summaries import ConversationSummaryStore
from ...strategies.summarizers.protocol import Summarizer
from ..errors import ChatFailedError, TurnRunningError
from ..turn_events import TurnEvents
from ..values import AgentInfo, ChatEvent, ChatReply, ChatTurn
from .active_turn import Parts
from .database.turns import ChatTurns
from .inspection import OpenAIChatInspector
from .options import ChatOptions, read_options
from .registry import AgentRegistry
from .remote_conversations import RemoteConversations
from .runtime import AgentRuntime, completed_event, failed_event, started_event
from .sessions import OpenAISQLAlchemySessionStore
from .turn_outcome import TurnHistory
from .turn_runner import Emit, TurnRunner

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

S = TypeVar("S", bound=SQLStore)
ReplyFuture: TypeAlias = asyncio.Future[ChatReply]


class OpenAIAgentProvider:
    """Runs agents in conversations. Each turn is recorded, and a conversation runs one turn at a time.

    A turn runs in a task of its own: it goes on if the caller stops waiting or disconnects.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._history = TurnHistory(parts.turns)
        self._remote = RemoteConversations(parts.runtime, parts.sessions, parts.turns, parts.options)
        self._runner = TurnRunner(parts, self._history, self._remote)
        self._running = RunningTurns()
        self.inspector = OpenAIChatInspector(parts, self._history)
        """Reads chats, and manages their branches."""

    def agents(self) -> list[AgentInfo]:
        """The agents that users can chat with."""
        runtime = self._parts.runtime
        found = (runtime.registry.get(name) for name in runtime.registry.names())
        return [
            AgentInfo(each.name, each.description, runtime.model_of(each.name), each.tools, each.handoffs)
            for each in found
        ]

    @property
    def lacks_model_key(self) -> bool:
        """Whether an agent has a model, but its API key is missing."""
        return self._parts.runtime.lacks_key

    async def prepare(self) -> None:
        """Load what the first turn needs, in a thread; nothing if no agent has a model.

        Without this, the first turn waits for it. It takes seconds, and 100 MB.
        """
        if self._parts.runtime.has_model:
            await self._parts.runtime.load()

    async def run(self, turn: ChatTurn) -> ChatReply:
        """Run a turn and return its reply. A turn that is done returns its recorded reply.

        Raises a `ChatFailedError` if there is no answer, a `ConversationBusyError` if another turn of the
        conversation takes too long, and a `TurnRunningError` if this turn is running already.
        """
        reply = await self._find_reply(turn)
        if reply is not None:
            return reply
        result: ReplyFuture = asyncio.get_running_loop().create_future()
        result.add_done_callback(_retrieve_error)
        self._start(turn, lambda _: None, result)
        return await asyncio.shield(result)

    async def stream(self, turn: ChatTurn) -> AsyncIterator[ChatEvent]:
        """Run a turn and yield its events. The last one is `turn.completed` or `turn.failed`.

        The turn goes on if the caller stops reading. Its answer is stored in the conversation.
        """
        try:
            events = await self.start(turn)
        except Exception as error:  # noqa: BLE001 - the caller reads errors as events
            yield failed_event(turn.turn_id, error)
            return
        async for event in events:
            yield event

    async def start(self, turn: ChatTurn) -> TurnEvents:
        """Start a turn and return its events. Raises an error if the turn cannot start.

        A turn that is done yields the events of its recorded reply. A `TurnRunningError` is raised if it is
        running already.
        """
        reply = await self._find_reply(turn)
        events = TurnEvents()
        if reply is None:
            self._start(turn, events.add)
        else:
            for event in _recorded_events(reply, turn):
                events.add(event)
        return events

    async def is_answered(self, turn: ChatTurn) -> bool:
        """Whether a turn is done; raises a `TurnRunningError` while it runs."""
        return await self._read_recorded(turn) is not None

    async def forget(self, conversation_ids: Iterable[str]) -> int:
        """Delete the copies of conversations at the provider; returns how many it deleted.

        Call this before you erase the conversations: erasing them erases their ids at the provider. A failure
        is logged and not raised.
        """
        return await self._remote.delete(conversation_ids)

    async def aclose(self, grace: float = 0.0) -> None:
        """Wait at most `grace` seconds for running turns, interrupt the rest, and close everything."""
        await self._running.aclose(grace)
        parts = self._parts
        await parts.runtime.aclose()
        for store in (parts.turns, parts.events, parts.summaries):
            await store.aclose()

    async def _find_reply(self, turn: ChatTurn) -> ChatReply | None:
        """As `_read_recorded`. The reservation of a turn that will not run is released."""
        will_run = False
        try:
            reply = await self._read_recorded(turn)
            will_run = reply is None
        finally:
            if not will_run:
                await _release(turn)
        return reply

    async def _read_recorded(self, turn: ChatTurn) -> ChatReply | None:
        """The recorded reply of a turn; `None` if the turn is to run."""
        record = await self._parts.turns.get(turn.turn_id)
        if record is None:
            return None
        if record.status == "running" and not await self._is_interrupted(turn):
            raise TurnRunningError
        if record.status != "done":
            return None  # it failed or was interrupted: the runner decides whether it may run again
        return await self._history.read_reply(turn, record)

    async def _is_interrupted(self, turn: ChatTurn) -> bool:
        """Whether a turn that is recorded as running was left by a process that died."""
        return turn.turn_id not in self._running and await self._runner.is_free(turn)

    def _start(self, turn: ChatTurn, emit: Emit, result: ReplyFuture | None = None) -> None:
        task = self._running.start(turn.turn_id, self._run_task(turn, emit, result))

        def on_end(ended: "asyncio.Task[None]") -> None:
            # A task that is cancelled before its first step runs none of its code.
            if ended.cancelled():
                _report_failure(turn, emit, result, ChatFailedError("interrupted"))

        task.add_done_callback(on_end)

    async def _run_task(self, turn: ChatTurn, emit: Emit, result: ReplyFuture | None) -> None:
        """Run a turn, and report its reply or its error to the caller."""
        async with AsyncExitStack() as afterwards:
            error: Exception
            try:
                try:
                    reply = await self._runner.run(turn, emit, afterwards)
                finally:
                    await _release(turn)  # before the caller sees the end, and may send the next turn
            except asyncio.CancelledError:
                error = ChatFailedError("interrupted")
            except Exception as raised:  # noqa: BLE001 - the end of the task; the caller gets the error
                error = raised
            else:
                emit(completed_event(reply, turn.conversation.session_id))
                if result is not None:
                    result.set_result(reply)
                return
            _report_failure(turn, emit, result, error)


async def _release(turn: ChatTurn) -> None:
    if turn.reservation is not None:
        await turn.reservation.release()


def _report_failure(turn: ChatTurn, emit: Emit, result: ReplyFuture | None, error: Exception) -> None:
    emit(failed_event(turn.turn_id, error))
    if result is not None and not result.done():
        result.set_exception(error)


def _retrieve_error(result: ReplyFuture) -> None:
    """Keep asyncio from logging an error that no caller waits for: the turn records it."""
    if not result.cancelled():
        result.exception()


def _recorded_events(reply: ChatReply, turn: ChatTurn) -> list[ChatEvent]:
    return [
        started_event(reply.turn_id, reply.conversation_id, reply.agent, reply.model),
        ChatEvent("text.delta", {"text": reply.text}),
        completed_event(reply, turn.conversation.session_id),
    ]


class RunningTurns:
    """The tasks of the turns that run in this process."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, turn_id: str) -> bool:
        return turn_id in self._tasks

    def start(self, turn_id: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run a turn as a task.

        Raises a `TurnRunningError` if the turn is running, and a `ChatFailedError` after `aclose`.
        """
        if turn_id in self._tasks or self._is_closing:
            work.close()
            raise ChatFailedError("interrupted") if self._is_closing else TurnRunningError()
        task = asyncio.create_task(work, name=f"chat turn {turn_id}")
        self._tasks[turn_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(turn_id, None))
        return task

    async def aclose(self, grace: float) -> None:
        """Wait at most `grace` seconds for the running turns, then cancel the rest."""
        self._is_closing = True
        tasks = list(self._tasks.values())
        if tasks and grace > 0:
            await asyncio.wait(tasks, timeout=grace)
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)


def build_openai_provider(
    url: str | None = None,
    registry: AgentRegistry | None = None,
    settings: Any = None,
    *,
    engine: "AsyncEngine | None" = None,
    meter: TokenMeter | None = None,
    quiet_seconds: float | None = None,
    summarizer: Summarizer | None = None,
    create_tables: bool = False,
    engine_kwargs: Mapping[str, Any] | None = None,
) -> OpenAIAgentProvider:
    """A provider with all its parts on one database: at a URL or path, or on an `engine` of SQLAlchemy.

    `settings` are `ChatOptions`, or an object with attributes of their names. Without a model in them, agents
    that name no model answer from memory alone. This connects to nothing yet.
    """
    database: dict[str, Any] = {"create_tables": create_tables, "engine_kwargs": engine_kwargs}
    sessions = OpenAISQLAlchemySessionStore(url, engine=engine, **database)
    options = read_options(settings, quiet_seconds) if settings is not None else ChatOptions()
    runtime = AgentRuntime(registry or AgentRegistry(), options)
    return OpenAIAgentProvider(
        Parts(
            runtime,
            sessions,
            _open_store(ChatTurns, url, engine, **database),
            _open_store(EventLog, url, engine, **database),
            _open_store(ConversationSummaryStore, url, engine, **database),
            options,
            GuardedMeter(meter),
            summarizer,
        )
    )


def _open_store(
    kind: type[S],
    url: str | None,
    engine: "AsyncEngine | None",
    create_tables: bool,
    engine_kwargs: Mapping[str, Any] | None,
) -> S:
    if engine is not None:
        return kind(open_on_engine(engine, create_tables))
    assert url is not None
    return kind(url, create_tables=create_tables, engine_kwargs=engine_kwargs)
