"""Hooks for the Runner, by which every run leaves its usage, its events and its words behind."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from traceback import walk_tb
from typing import Any, Self

from agents import Agent, AgentsException, ModelResponse, RunHooks

from ...memory.store import MemoryStore
from ...sessions.events import EventLog
from ...sessions.protocol import Session
from .run_recorder import Keeper, RunRecord
from .run_texts import words_of_answer, words_of_user


@dataclass
class _Run:
    """What was seen of a run so far."""

    context: Any
    question: str = field(repr=False)
    agent: str | None = None
    responses: list[Any] = field(default_factory=list, repr=False)
    answer: str = field(default="", repr=False)
    has_ended: bool = False

    def record(self, is_answered: bool) -> RunRecord:
        answer = self.answer if is_answered else ""
        # Hooks are not told of interruptions: every run without an end may go on from a saved state.
        interruptions = () if self.has_ended else (self.context,)
        return RunRecord(self.context, self.responses, self.question, answer, self.agent, interruptions)


class MemoryHooks(RunHooks[Any]):
    """Keeps what came of the runs in a block: usage, events, and what was said, to be learned from.

        async with MemoryHooks(store, "agent", "user", session=session) as hooks:
            result = await Runner.run(agent, "Hello", session=session, hooks=hooks)

    The SDK calls no hook when a run is really over: the last one comes before the answer is in the session
    and before guardrails have let it pass, and none comes when a run fails. So it is the end of the block
    that keeps the runs. A stream is read to its end inside it. Of a run that fails, usage and events are
    kept, and what was said is not recorded: the user will say it again. What else fails in the block keeps
    nothing from being recorded. Where memory fails, that is logged, and nothing is raised.
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
        self._keeper = Keeper(store, agent_id, user_id, session, events, conversation_id, learn_after)
        self._runs: list[_Run] | None = None

    async def __aenter__(self) -> Self:
        self._runs = []
        return self

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        runs, self._runs = self._runs or [], None
        failed = [] if error is None else _stopped_by(error, runs)
        for run in runs:
            await self._keeper.keep(run.record(is_answered=not any(run is each for each in failed)))

    async def on_llm_start(
        self,
        context: Any,
        agent: Agent[Any],
        system_prompt: str | None,  # noqa: ARG002
        input_items: list[Any],
    ) -> None:
        """A run begins, or goes on."""
        self._run_of(context, words_of_user(context.turn_input or input_items)).agent = agent.name

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has answered."""
        run = self._run_of(context)
        run.agent = agent.name
        run.responses.append(response)

    async def on_agent_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
        """An agent has an answer, which is as yet neither in the session nor let pass."""
        run = self._run_of(context)
        run.agent, run.answer, run.has_ended = agent.name, words_of_answer(output, run.responses), True

    def _run_of(self, context: Any, question: str = "") -> _Run:
        """The run of a context. Its usage is the one thing that all contexts of a run share.

        A caller may pass one context to several runs: after the end of one, the next begins.
        """
        if self._runs is None:
            raise RuntimeError("MemoryHooks are used in a block: async with MemoryHooks(...) as hooks")
        for run in self._runs:
            if run.context.usage is context.usage and not run.has_ended:
                return run
        self._runs.append(_Run(context, question))
        return self._runs[-1]


def _stopped_by(error: BaseException, runs: Sequence[_Run]) -> list[_Run]:
    """The runs that failed though they had an answer. One without an answer needs not be told apart."""
    if isinstance(error, BaseExceptionGroup):
        return [run for each in error.exceptions for run in _stopped_by(each, runs)]
    known = getattr(error, "run_data", None)
    if isinstance(error, AgentsException) and known is not None:
        return [run for run in runs if run.context.usage is known.context_wrapper.usage][-1:]
    # Of an error that is not its own, the SDK does not say in which run it was: in one that has not ended,
    # if there is one. Else something failed after the end, such as a guardrail or the session.
    is_late = bool(runs) and _is_from_a_run(error) and all(run.has_ended for run in runs)
    return [runs[-1]] if is_late else []


def _is_from_a_run(error: BaseException) -> bool:
    """Whether an error came through the Runner, and not from code around it."""
    frames = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(name.startswith("agents.run") for name in frames)
