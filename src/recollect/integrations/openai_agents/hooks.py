"""Hooks for the Runner that record the usage, the events and the messages of every run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from traceback import walk_tb
from typing import Any, Self

from agents import Agent, AgentsException, ModelResponse, RunHooks

from ...memory.store import MemoryStore
from ...sessions.events import EventLog
from ...sessions.protocol import Session
from .run_recorder import RunRecord, RunRecorder
from .run_texts import answer_text, user_text


@dataclass
class _ObservedRun:
    """What the hooks have seen of a run so far."""

    context: Any
    question: str = field(repr=False)
    agent: str | None = None
    responses: list[Any] = field(default_factory=list, repr=False)
    answer: str = field(default="", repr=False)
    has_ended: bool = False

    def record(self, is_answered: bool) -> RunRecord:
        answer = self.answer if is_answered else ""
        # The SDK calls no hook for an interruption: a run without an end may go on from a saved state.
        interruptions = () if self.has_ended else (self.context,)
        return RunRecord(self.context, self.responses, self.question, answer, self.agent, interruptions)


class MemoryHooks(RunHooks[Any]):
    """Records the runs in a block: their usage, their events, and their messages, to learn from.

        async with MemoryHooks(store, "agent", "user", session=session) as hooks:
            result = await Runner.run(agent, "Hello", session=session, hooks=hooks)

    The end of the block records the runs, since the SDK has no hook for the end of a run: its last hook comes
    before the answer is in the session and before the guardrails, and a run that fails has none. Read a
    stream to its end inside the block. For a run that fails, usage and events are recorded, but not its
    messages: the user will send them again. Another error in the block does not prevent the recording. If
    memory fails, that is logged, and nothing is raised.
    """

    def __init__(
        self,
        store: MemoryStore,
        agent_id: str,
        user_id: str,
        *,
        session: Session | None = None,
        events: EventLog | None = None,
        conversation_id: str | None = None,
        learn_after: float | None = None,
    ) -> None:
        self._recorder = RunRecorder(store, agent_id, user_id, session, events, conversation_id, learn_after)
        self._runs: list[_ObservedRun] | None = None

    async def __aenter__(self) -> Self:
        self._runs = []
        return self

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        runs, self._runs = self._runs or [], None
        failed = [] if error is None else _failed_runs(error, runs)
        for run in runs:
            await self._recorder.record(run.record(is_answered=not any(run is each for each in failed)))

    async def on_llm_start(
        self,
        context: Any,
        agent: Agent[Any],
        system_prompt: str | None,  # noqa: ARG002
        input_items: list[Any],
    ) -> None:
        """A run starts or continues."""
        self._run_of(context, user_text(context.turn_input or input_items)).agent = agent.name

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has answered."""
        run = self._run_of(context)
        run.agent = agent.name
        run.responses.append(response)

    async def on_agent_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
        """An agent has an answer. It is not in the session yet, and guardrails may still reject it."""
        run = self._run_of(context)
        run.agent, run.answer, run.has_ended = agent.name, answer_text(output, run.responses), True

    def _run_of(self, context: Any, question: str = "") -> _ObservedRun:
        """The run of a context. The usage object identifies a run: all contexts of the run share it.

        A caller may pass one context to several runs in turn. A context whose run has ended starts a new run.
        """
        if self._runs is None:
            raise RuntimeError("use MemoryHooks in a block: async with MemoryHooks(...) as hooks")
        for run in self._runs:
            if run.context.usage is context.usage and not run.has_ended:
                return run
        self._runs.append(_ObservedRun(context, question))
        return self._runs[-1]


def _failed_runs(error: BaseException, runs: Sequence[_ObservedRun]) -> list[_ObservedRun]:
    """The runs that failed after they had an answer. A run without an answer has no messages to leave out."""
    if isinstance(error, BaseExceptionGroup):
        return [run for each in error.exceptions for run in _failed_runs(each, runs)]
    known = getattr(error, "run_data", None)
    if isinstance(error, AgentsException) and known is not None:
        return [run for run in runs if run.context.usage is known.context_wrapper.usage][-1:]
    # The SDK names the run only for errors of its own. Another error belongs to a run that has not ended, if
    # there is one. Otherwise a step after the end failed, such as a guardrail or the session.
    is_late = bool(runs) and _is_from_a_run(error) and all(run.has_ended for run in runs)
    return [runs[-1]] if is_late else []


def _is_from_a_run(error: BaseException) -> bool:
    """Whether the Runner raised an error, and not the code around it."""
    frames = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(name.startswith("agents.run") for name in frames)
