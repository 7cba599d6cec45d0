"""Conversations with a real Runner and a scripted model, to be played on one session and on another.

A scenario says what the user does turn by turn and what the model answers call by call. `play` runs it and
returns all there is to see of it: how each turn ended, what the model was shown, what the session held.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agents
import httpx2
from agents import (
    Agent,
    GuardrailFunctionOutput,
    ModelRetryAdvice,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    Runner,
    RunState,
    function_tool,
    input_guardrail,
    output_guardrail,
    retry_policies,
)
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from openai import BadRequestError
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionWebSearch,
    ResponseOutputItemDoneEvent,
    ResponseReasoningItem,
)
from openai.types.responses.response_function_web_search import ActionSearch
from openai.types.responses.response_reasoning_item import Summary

import recollect

Item = dict[str, Any]
Options = dict[str, Any]
# What the user says; or what they decide, seeing the result of the turn before: a state to go on from.
Turn = str | list[Item] | Callable[[Any], Any]

EVERYTHING = 10_000  # an explicit limit goes before one in the settings
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


# --- the agents: one at the desk, with tools and guardrails, who can hand over to another ---


@function_tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@function_tool
async def weather(city: str) -> str:
    """Tell the weather. Of two cities asked for at once, the second is answered first."""
    await asyncio.sleep(0.02 if city == "Paris" else 0)
    return f"sunny in {city} ☀"


@function_tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an amount, if someone approves."""
    return f"paid {amount}"


@function_tool
def fail() -> str:
    """Fail."""
    raise ValueError("this tool is broken")


def said(input_items: str | list[Any]) -> str:
    """What the user said last."""
    return input_items if isinstance(input_items, str) else str(input_items[-1].get("content"))


@input_guardrail(run_in_parallel=False)
def no_weapons(_context: Any, _agent: Any, input_items: str | list[Any]) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, tripwire_triggered="weapon" in said(input_items))


@input_guardrail
async def no_drugs(_context: Any, _agent: Any, input_items: str | list[Any]) -> GuardrailFunctionOutput:
    tripped = "drugs" in said(input_items)
    await asyncio.sleep(0.03 * tripped)  # the model has been asked by then
    return GuardrailFunctionOutput(None, tripwire_triggered=tripped)


@output_guardrail
def no_insults(_context: Any, _agent: Any, output: str) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, tripwire_triggered="idiot" in output)


def desk(model: ScriptedModel) -> Agent[Any]:
    """The agent that every run starts with."""
    retry = ModelRetrySettings(
        max_retries=2, policy=retry_policies.provider_suggested(), backoff={"initial_delay": 0}
    )
    settings = ModelSettings(retry=retry)
    tools = [add, weather, pay, fail]
    expert = Agent(name="Expert", model=model, model_settings=settings, tools=list(tools))
    return Agent(
        name="Desk",
        instructions="Be brief.",
        model=model,
        model_settings=settings,
        tools=list(tools),
        handoffs=[expert],
        input_guardrails=[no_weapons, no_drugs],
        output_guardrails=[no_insults],
    )


# --- what the model answers ---


def answer(text: str) -> list[Any]:
    return [assistant_message(text, item_id=f"msg_{text}")]


def call(tool: str, call_id: str = "call_1", **arguments: Any) -> Any:
    return function_call(tool, arguments, call_id=call_id, item_id=f"fc_{call_id}")


def thought(text: str) -> ResponseReasoningItem:
    summary = [Summary(type="summary_text", text=text)] if text else []
    return ResponseReasoningItem(
        id=f"rs_{text}", type="reasoning", summary=summary, encrypted_content=f"gAAAAA{text}"
    )


def searched(query: str, text: str) -> ModelStep:
    """An answer after a search, with its stream spelled out: the scripted model streams no hosted tools."""
    action = ActionSearch(type="search", query=query)
    search = ResponseFunctionWebSearch(id="ws_1", type="web_search_call", status="completed", action=action)
    output = [thought("search"), search, *answer(text)]
    response = Response(
        id="resp_1",
        created_at=0,
        model="scripted",
        object="response",
        output=output,
        parallel_tool_calls=False,
        tool_choice="auto",
        tools=[],
    )
    done = [
        ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=item, output_index=index, sequence_number=index
        )
        for index, item in enumerate(output)
    ]
    completed = ResponseCompletedEvent(
        type="response.completed", response=response, sequence_number=len(output)
    )
    return ModelStep.stream([*done, completed], output=output)


def outage() -> ModelStep:
    """An error for good."""
    return ModelStep.raise_error(RuntimeError("the model is down"))


def hiccup() -> ModelStep:
    """An error of which the provider says: try again."""
    advice = ModelRetryAdvice(suggested=True, replay_safety="safe")
    return ModelStep.raise_error(ConnectionError("the line is bad"), retry_advice=advice)


def conversation_locked() -> ModelStep:
    """The one error that the Runner retries unasked, after a second."""
    response = httpx2.Response(400, request=httpx2.Request("POST", "http://localhost/v1/responses"))
    return ModelStep.raise_error(
        BadRequestError("locked", response=response, body={"code": "conversation_locked"})
    )


async def _late(_call: ModelCall) -> Sequence[Any]:
    await asyncio.sleep(0.2)
    return answer("too late")


def late_answer() -> ModelStep:
    """An answer that a guardrail beside it overtakes."""
    return ModelStep.respond(_late)


# --- what the user decides about calls that await approval ---


def approve(result: Any) -> RunState[Any]:
    state: RunState[Any] = result.to_state()
    for interruption in state.get_interruptions():
        state.approve(interruption)
    return state


def reject(result: Any) -> RunState[Any]:
    state: RunState[Any] = result.to_state()
    for interruption in state.get_interruptions():
        state.reject(interruption)
    return state


def approve_elsewhere(result: Any) -> RunState[Any]:
    """Approve what went through a store in the meantime."""
    restored = asyncio.run(RunState.from_json(result.last_agent, result.to_state().to_json()))
    for interruption in restored.get_interruptions():
        restored.approve(interruption)
    return restored


# --- the scenarios ---


@dataclass(frozen=True)
class Scenario:
    turns: Sequence[Turn]
    steps: Callable[[], list[Any]]
    stored: str  # in short: U user, A assistant, R reasoning, C call, O output, W web search, D developer
    ends: Sequence[str] = ()  # how turns end that do not end with an answer, by their number
    options: Options = field(default_factory=dict)


SCENARIOS = {
    "an answer": Scenario(["hi"], lambda: [answer("hello")], "UA"),
    "several turns": Scenario(
        ["hi", "hi", "谢谢 😀\u2028", "bye"],
        lambda: [answer("hello"), answer("hello again"), answer("不客气"), answer("bye")],
        "UAUAUAUA",
    ),
    "items as input": Scenario(
        [
            [
                {"role": "developer", "content": "The user is a child."},
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "what is this?"},
                        {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
                    ],
                },
            ],
            [{"type": "message", "role": "user", "content": "and?"}, {"role": "user", "content": "and?"}],
        ],
        lambda: [answer("a dot"), answer("a dot, I said")],
        "DUAUUA",
    ),
    "a tool": Scenario(
        ["1+2?", "thanks"],
        lambda: [[call("add", a=1, b=2)], answer("3"), answer("welcome")],
        "UCOAUA",
    ),
    "tools in parallel": Scenario(
        ["weather?", "1+2?"],
        lambda: [
            [call("weather", "p", city="Paris"), call("weather", "r", city="Rome"), call("fail", "f")],
            answer("sunny"),
            [call("add", "b", a=1, b=2)],
            answer("3"),
        ],
        "UCCCOOOAUCOA",
    ),
    "tools one after another": Scenario(
        ["1+2+3?"],
        lambda: [[call("add", "a", a=1, b=2)], [call("add", "b", a=3, b=3)], answer("6")],
        "UCOCOA",
    ),
    "a tool that fails": Scenario(
        ["fail", "again"], lambda: [[call("fail")], answer("sorry"), answer("no")], "UCOAUA"
    ),
    "thoughts before calls": Scenario(
        ["1+2?", "weather?"],
        lambda: [
            [thought("add"), call("add", a=1, b=2)],
            [thought("so it is"), *answer("3")],
            [thought(""), thought("both"), call("weather", "p", city="Paris"), call("add", "b", a=1, b=2)],
            answer("sunny"),
        ],
        "URCORAURRCCOOA",
    ),
    "words before a call": Scenario(
        ["1+2?"], lambda: [[*answer("let me see"), call("add", a=1, b=2)], answer("3")], "UACOA"
    ),
    "a hosted tool": Scenario(
        ["news?", "more"],
        lambda: [searched("news", "none"), answer("none, I said")],
        "URWAUA",
    ),
    "a handoff": Scenario(
        ["expert!", "and now?"],
        lambda: [[call("transfer_to_expert")], answer("yes?"), answer("I am the desk")],
        "UCOAUA",
    ),
    "a handoff and tools": Scenario(
        ["expert!", "expert!"],
        lambda: [
            [call("add", "a", a=1, b=2)],
            [thought("hand over"), call("transfer_to_expert", "t")],
            [thought("look"), call("weather", "w", city="Paris"), call("weather", "v", city="Rome")],
            answer("sunny"),
            [call("transfer_to_expert", "u")],
            answer("again?"),
        ],
        "UCORCORCCOOAUCOA",
    ),
    # Errors
    "the model fails at once": Scenario(
        ["hi", "hi"], lambda: [outage(), answer("hello")], "UUA", ["RuntimeError"]
    ),
    "the model fails after a tool": Scenario(
        ["1+2?", "1+2?"],
        lambda: [[thought("add"), call("add", a=1, b=2)], outage(), answer("3")],
        "URCOUA",
        ["RuntimeError"],
    ),
    "the model fails after a handoff": Scenario(
        ["expert!", "expert!"],
        lambda: [[call("transfer_to_expert")], outage(), answer("yes?")],
        "UCOUA",
        ["RuntimeError"],
    ),
    "the model fails later": Scenario(
        ["hi", "1+2?", "bye"],
        lambda: [answer("hello"), [call("add", a=1, b=2)], outage(), answer("bye")],
        "UAUCOUA",
        ["", "RuntimeError"],
    ),
    "too many turns": Scenario(
        ["loop", "stop"],
        lambda: [*([call("add", f"c{n}", a=n, b=n)] for n in range(3)), answer("stopped")],
        "UCOCOCOUA",
        ["MaxTurnsExceeded"],
        {"max_turns": 3},
    ),
    # Retries
    "a retry": Scenario(
        ["hi", "bye"], lambda: [hiccup(), hiccup(), answer("hello"), hiccup(), answer("bye")], "UAUA"
    ),
    "a retry after a tool": Scenario(
        ["1+2?", "thanks"],
        lambda: [[call("add", a=1, b=2)], hiccup(), answer("3"), answer("welcome")],
        "UCOAUA",
    ),
    "retries in vain": Scenario(
        ["hi", "hi"],
        lambda: [hiccup(), hiccup(), hiccup(), answer("hello")],
        "UUA",
        ["ConnectionError"],
    ),
    # Guardrails
    "an input guardrail before the model": Scenario(
        ["hi", "a weapon", "bye"],
        lambda: [answer("hello"), answer("bye")],
        "UAUUA",
        ["", "InputGuardrailTripwireTriggered"],
    ),
    "an input guardrail beside the model": Scenario(
        ["hi", "some drugs", "bye"],
        lambda: [answer("hello"), late_answer(), answer("bye")],
        "UAUUA",
        ["", "InputGuardrailTripwireTriggered"],
    ),
    "an output guardrail": Scenario(
        ["1+2?", "sorry?"],
        lambda: [[call("add", a=1, b=2)], answer("3, you idiot"), answer("3")],
        "UCOUA",
        ["OutputGuardrailTripwireTriggered"],
    ),
    # Approval
    "an approved call": Scenario(
        ["pay 5", approve, "thanks"],
        lambda: [[thought("pay"), call("pay", amount=5)], answer("paid"), answer("welcome")],
        "URCOAUA",
        ["interrupted"],
    ),
    "a rejected call": Scenario(
        ["pay 5", reject, "ok"],
        lambda: [[call("pay", amount=5)], answer("not paid"), answer("ok")],
        "UCOAUA",
        ["interrupted"],
    ),
    "a call approved from a stored state": Scenario(
        ["hi", "pay 5", approve_elsewhere, "thanks"],
        lambda: [answer("hello"), [call("pay", amount=5)], answer("paid"), answer("welcome")],
        "UAUCOAUA",
        ["", "interrupted"],
    ),
    "one of several calls awaits approval": Scenario(
        ["pay 5 and add", approve, "thanks"],
        lambda: [
            [call("add", "a", a=1, b=2), call("pay", "p", amount=5), call("weather", "w", city="Rome")],
            answer("done"),
            answer("welcome"),
        ],
        "UCCCOOOAUA",
        ["interrupted"],
    ),
    "one approval after another": Scenario(
        ["pay 5, then 6", approve, approve, "thanks"],
        lambda: [
            [call("pay", "p", amount=5)],
            [call("pay", "q", amount=6)],
            answer("done"),
            answer("welcome"),
        ],
        "UCOCOAUA",
        ["interrupted", "interrupted"],
    ),
    "a call that nobody decides about": Scenario(
        ["pay 5", "never mind", "bye"],
        lambda: [[thought("pay"), call("pay", amount=5)], answer("ok"), answer("bye")],
        "URCUAUA",
        ["interrupted"],
    ),
    "the model fails after an approval": Scenario(
        ["pay 5", approve, "paid?"],
        lambda: [[call("pay", amount=5)], outage(), answer("yes")],
        "UCOUA",
        ["interrupted", "RuntimeError"],
    ),
}


# --- running them ---


def run(agent: Agent[Any], turn: Any, **options: Any) -> Any:
    """In an event loop of its own."""
    return asyncio.run(Runner.run(agent, turn, **options))


def run_sync(agent: Agent[Any], turn: Any, **options: Any) -> Any:
    """The Runner leaves its event loop open. It is closed here, so that the next run makes another."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return Runner.run_sync(agent, turn, **options)
    finally:
        loop.close()


def run_streamed(agent: Agent[Any], turn: Any, **options: Any) -> Any:
    async def consume() -> Any:
        result = Runner.run_streamed(agent, turn, **options)
        async for _ in result.stream_events():
            pass
        return result

    return asyncio.run(consume())


Run = Callable[..., Any]
RUNS: dict[str, Run] = {"run": run, "run_sync": run_sync, "run_streamed": run_streamed}


@dataclass
class Record:
    """All there is to see of a conversation."""

    ends: list[str] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    shown: list[Any] = field(default_factory=list)
    stored: list[list[Item]] = field(default_factory=list)  # after each turn


def play(session: Any, scenario: Scenario, run_turn: Run, **run_config: Any) -> Record:
    """Run the turns one after another, each as a run of its own."""
    record = Record()
    model = ScriptedModel(scenario.steps())
    agent = desk(model)
    options = {**scenario.options, "run_config": RunConfig(tracing_disabled=True, **run_config)}
    result: Any = None
    with asyncio.Runner() as reader:  # an event loop beside those of the runs
        for turn in scenario.turns:
            try:
                result = run_turn(agent, turn(result) if callable(turn) else turn, session=session, **options)
            except (agents.AgentsException, RuntimeError, ConnectionError) as error:
                record.ends.append(type(error).__name__)
            else:
                record.ends.append("interrupted" if result.interruptions else "")
                record.outputs.append(result.final_output)
            record.stored.append(reader.run(session.get_items(EVERYTHING)))
    record.shown = [call.input for call in model.calls]
    model.assert_complete()
    return record


@contextmanager
def both_sessions(folder: Path, **options: Any) -> Iterator[tuple[Any, Any]]:
    """A session of ours, in a file, and one of the SDK."""
    with (
        closing(recollect.SQLiteSession("s", folder / "ours.db", **options)) as ours,
        closing(agents.SQLiteSession("s", **options)) as theirs,
    ):
        yield ours, theirs


def in_short(items: Sequence[Item]) -> str:
    """One letter for each item."""
    return "".join(_LETTERS[str(item.get("type", "message")), item.get("role")] for item in items)


_LETTERS = {
    ("message", "user"): "U",
    ("message", "assistant"): "A",
    ("message", "developer"): "D",
    ("message", "system"): "S",
    ("reasoning", None): "R",
    ("function_call", None): "C",
    ("function_call_output", None): "O",
    ("web_search_call", None): "W",
    ("compaction", None): "K",
}
