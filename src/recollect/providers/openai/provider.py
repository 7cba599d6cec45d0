"""The chat provider on the OpenAI Agents SDK."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ...memory.pipeline.token_meter import GuardedMeter, TokenMeter
from ...sessions.events import EventLog
from ...sql.database import Database, SQLStore
from ...strategies.summaries import ConversationSummaryStore
from ...strategies.summarizers.protocol import Summarizer
from ..errors import ChatFailedError, TurnRunningError
from ..values import AgentInfo, ChatEvent, ChatReply, ChatTurn
from .active_turn import Parts
from .database.turns import ChatTurns
from .inspection import Looking
from .options import ChatOptions, read_options
from .registry import AgentRegistry
from .remote_conversations import Forgetting
from .runtime import AgentRuntime, completed_event, failed_event, started_event
from .sessions import ChatSessionManager, OpenAISQLAlchemySessionStore
from .turn_runner import Tell, TurnRunner

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

Answer: TypeAlias = "asyncio.Future[ChatReply]"


class OpenAIAgentProvider:
    """Runs agents in conversations: each turn in a task of its own, recorded, and one at a time in each."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._runner = TurnRunner(parts)
        self._running: RunningTurns = RunningTurns()
        self.looking = Looking(parts)
        """What there is to see of chats."""

    def agents(self) -> list[AgentInfo]:
        """The agents that can be talked to."""
        runtime = self._parts.runtime
        found = (runtime.registry.get(name) for name in runtime.registry.names())
        return [
            AgentInfo(each.name, each.description, runtime.model_of(each.name), each.tools, each.handoffs)
            for each in found
        ]

    async def run(self, turn: ChatTurn) -> ChatReply:
        """Run a turn and return its answer. A turn that was answered before is not run again.

        Where there is no answer, that is a `ChatFailedError`; where another turn of the conversation takes
        too long, a `ConversationBusyError`; where this very turn is running already, a `TurnRunningError`.
        """
        reply = await self._known_or_released(turn)
        if reply is not None:
            return reply
        answer: Answer = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_look_at)
        self._set_off(turn, lambda _: None, answer)
        return await asyncio.shield(answer)

    async def stream(self, turn: ChatTurn) -> AsyncIterator[ChatEvent]:
        """Run a turn and tell what happens, the last of it `turn.completed` or `turn.failed`.

        Whoever stops listening does not end the turn: it goes on, and its answer is in the conversation.
        """
        try:
            events = await self.start(turn)
        except Exception as error:  # noqa: BLE001 - a stream has begun: whatever it is, it is told there
            yield failed_event(turn.turn_id, error)
            return
        async for event in events:
            yield event

    async def start(self, turn: ChatTurn) -> AsyncIterator[ChatEvent]:
        """Begin a turn as `stream` does, and return what it then tells; what keeps it from that is raised.

        A turn that was answered before is told again, and one that is running is a `TurnRunningError`.
        """
        reply = await self._known_or_released(turn)
        events: asyncio.Queue[ChatEvent] = asyncio.Queue()
        if reply is None:
            self._set_off(turn, events.put_nowait)
        else:
            for event in _replayed(reply, turn):
                events.put_nowait(event)
        return _until_the_end(events)

    async def is_answered(self, turn: ChatTurn) -> bool:
        """Whether a turn was run before, and has an answer; while it is running, a `TurnRunningError`."""
        return await self._known(turn) is not None

    async def forget(self, conversation_ids: Iterable[str]) -> int:
        """Delete at the provider the conversations that have an id there, and return how many it deleted.

        To be asked before they are erased here, where those ids are kept. What the provider does not delete
        is logged, and raises nothing.
        """
        return await Forgetting(self._parts).forget(conversation_ids)

    async def aclose(self, grace: float = 0.0) -> None:
        """Wait for running turns, at most `grace` seconds; interrupt the rest, and let go of everything."""
        await self._running.aclose(grace)
        parts = self._parts
        await parts.runtime.aclose()
        for store in (parts.turns, parts.events, parts.summaries):
            await store.aclose()

    async def _known_or_released(self, turn: ChatTurn) -> ChatReply | None:
        """As `_known`; the reservation of a turn that is not to be run is released."""
        is_to_run = False
        try:
            reply = await self._known(turn)
            is_to_run = reply is None
        finally:
            if not is_to_run:
                await _release(turn)
        return reply

    async def _known(self, turn: ChatTurn) -> ChatReply | None:
        """The recorded answer of a turn that was run before; `None` if it is to be run."""
        record = await self._parts.turns.get(turn.turn_id)
        if record is None:
            return None
        if record.status == "running" and not await self._was_left(turn):
            raise TurnRunningError
        if record.status != "done":
            return None  # it failed, or whoever ran it is dead: the runner sees whether it can be run again
        return await self._runner.settling.recorded(turn, record)

    async def _was_left(self, turn: ChatTurn) -> bool:
        """Whether nobody holds the conversation any more."""
        return turn.turn_id not in self._running and await self._runner.is_free(turn)

    def _set_off(self, turn: ChatTurn, tell: Tell, answer: "Answer | None" = None) -> None:
        task = self._running.start(turn.turn_id, self._turn(turn, tell, answer))

        def look_at_end(ended: "asyncio.Task[None]") -> None:
            if ended.cancelled():  # it may not even have begun: whoever waits must not wait for ever
                _tell_failure(turn, tell, answer, ChatFailedError("interrupted"))

        task.add_done_callback(look_at_end)

    async def _run(self, turn: ChatTurn, tell: Tell, afterwards: AsyncExitStack) -> ChatReply:
        """Run a turn; its reservation is gone before anybody hears of its end, and sends the next turn."""
        try:
            return await self._runner.run(turn, tell, afterwards)
        finally:
            await _release(turn)

    async def _turn(self, turn: ChatTurn, tell: Tell, answer: "Answer | None") -> None:
        """Run a turn to its end, whatever that is, and hand that to whoever waits."""
        async with AsyncExitStack() as afterwards:
            error: Exception
            try:
                reply = await self._run(turn, tell, afterwards)
            except asyncio.CancelledError:
                error = ChatFailedError("interrupted")
            except Exception as raised:  # noqa: BLE001 - where the task ends; whoever waits gets it
                error = raised
            else:
                tell(completed_event(reply, turn.conversation.session_id))
                if answer is not None:
                    answer.set_result(reply)
                return
            _tell_failure(turn, tell, answer, error)


async def _release(turn: ChatTurn) -> None:
    if turn.reservation is not None:
        await turn.reservation.release()


def _tell_failure(turn: ChatTurn, tell: Tell, answer: "Answer | None", error: Exception) -> None:
    tell(failed_event(turn.turn_id, error))
    if answer is not None and not answer.done():
        answer.set_exception(error)


def _look_at(answer: "Answer") -> None:
    """An error that nobody waits for any more is recorded, and need not be logged once more."""
    if not answer.cancelled():
        answer.exception()


async def _until_the_end(events: "asyncio.Queue[ChatEvent]") -> AsyncIterator[ChatEvent]:
    while True:
        event = await events.get()
        yield event
        if event.kind in ("turn.completed", "turn.failed"):
            return


def _replayed(reply: ChatReply, turn: ChatTurn) -> list[ChatEvent]:
    """The events of an answer that was recorded."""
    return [
        started_event(reply.turn_id, reply.conversation_id, reply.agent, reply.model),
        ChatEvent("text.delta", {"text": reply.text}),
        completed_event(reply, turn.conversation.session_id),
    ]


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
    """A provider with all its parts around one engine: that of a URL or path, or an `engine` of SQLAlchemy.

    `settings` are `ChatOptions`, or an object with attributes of their names. With no model in them, agents
    that name none answer from memory alone. Nothing is connected to yet.
    """
    place: dict[str, Any] = {"create_tables": create_tables, "engine_kwargs": engine_kwargs}
    sessions = OpenAISQLAlchemySessionStore(url, engine=engine, **place)
    options = read_options(settings, quiet_seconds) if settings is not None else ChatOptions()
    summaries = open_on(ConversationSummaryStore, url, engine, **place)
    runtime = AgentRuntime(registry or AgentRegistry(), options)
    runtime.warm_up()
    return OpenAIAgentProvider(
        Parts(
            runtime,
            ChatSessionManager(sessions, summaries, summarizer),
            open_on(ChatTurns, url, engine, **place),
            open_on(EventLog, url, engine, **place),
            summaries,
            options,
            GuardedMeter(meter),
        )
    )


class RunningTurns:
    """Starts turns, and at the end waits for them."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, turn_id: str) -> bool:
        return turn_id in self._tasks

    def start(self, turn_id: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run a turn as a task; one that is running already, or comes too late, is refused."""
        if turn_id in self._tasks or self._is_closing:
            work.close()
            raise ChatFailedError("interrupted") if self._is_closing else TurnRunningError()
        task = asyncio.create_task(work, name=f"chat turn {turn_id}")
        self._tasks[turn_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(turn_id, None))
        return task

    async def aclose(self, grace: float) -> None:
        """Wait for running turns, at most `grace` seconds; then interrupt those that are left."""
        self._is_closing = True
        tasks = list(self._tasks.values())
        if tasks and grace > 0:
            await asyncio.wait(tasks, timeout=grace)
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)


S = TypeVar("S", bound=SQLStore)


def open_on(
    kind: type[S],
    url: str | None,
    engine: "AsyncEngine | None",
    create_tables: bool,
    engine_kwargs: Mapping[str, Any] | None,
) -> S:
    """A store at a URL, whose engine all there share; or on an engine, which is never disposed of."""
    if engine is None:
        assert url is not None
        return kind(url, create_tables=create_tables, engine_kwargs=engine_kwargs)
    store = kind.__new__(kind)
    store._database = _database_on(engine, create_tables)
    return store


def _database_on(engine: "AsyncEngine", create_tables: bool) -> Database:
    from ...sessions.sqlalchemy import SQLAlchemySession

    # A session on the engine has what runs scripts there, and what all know who use the engine.
    running = SQLAlchemySession("shared", engine=engine, create_tables=create_tables)._engine
    return Database(running, engine.dialect.name, lambda: None, lambda: None)
