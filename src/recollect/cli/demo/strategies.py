"""The first part of the demo: a long conversation with tools, and how much of it the model sees."""

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...items import Item, estimate_tokens, find_orphans
from ...sessions.sqlite import SQLiteSession
from ...strategies.session import StrategySession
from ...strategies.values import Compact, Strategy, Summarize, Trim

if TYPE_CHECKING:
    from agents import Agent
    from agents.testing import ModelCall

_CITIES = ("Lisbon", "Porto", "Faro", "Evora", "Braga", "Sintra", "Aveiro", "Coimbra", "Tomar", "Beja")
_STRATEGIES: tuple[Strategy, ...] = (
    Trim(max_user_turns=4, keep_last_user_turns=2),
    Summarize(max_user_turns=4, keep_last_user_turns=2, summary_max_tokens=120),
    Compact(trigger_turns=3, keep=1),
)


def show_long_conversation() -> None:
    """Run the same conversation with each strategy, and print the tokens of each turn."""
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder:
        shown = [asyncio.run(_tokens_by_turn(strategy, Path(folder))) for strategy in _STRATEGIES]
    print("\n--- A longer conversation: about how many of the stored tokens the model sees ---")
    print(f"{'turn':>6}{'stored':>10}" + "".join(f"{strategy.mode:>12}" for strategy in _STRATEGIES))
    for turn, rows in enumerate(zip(*shown, strict=True), start=1):
        print(f"{turn:>6}{rows[0][0]:>10,}" + "".join(f"{tokens:>12,}" for _, tokens in rows))
    before = sum(stored for stored, _ in shown[0])
    totals = [sum(tokens for _, tokens in rows) for rows in shown]
    print(f"{'sum':>6}{before:>10,}" + "".join(f"{total:>12,}" for total in totals))
    print(" " * 16 + "".join(f"{f'-{100 - 100 * total // before} %':>12}" for total in totals))
    print("All items are still stored, and every tool call has its output.")


async def _tokens_by_turn(strategy: Strategy, folder: Path) -> list[tuple[int, int]]:
    """Return for each turn the stored tokens and the tokens of the last request to the model."""
    from agents import Runner, set_tracing_disabled

    set_tracing_disabled(True)
    seen: list[list[Item]] = []
    agent, rows = _agent(seen), []
    async with StrategySession(SQLiteSession(strategy.mode, folder / "long.db"), strategy) as session:
        for city in _CITIES:
            await Runner.run(
                agent, f"What is there to see in {city}, and how is the weather?", session=session
            )
            stored = await session.wrapped.get_items()
            if find_orphans(seen[-1]) or find_orphans(stored):
                raise AssertionError("a tool call lost its output")
            rows.append((estimate_tokens(stored[:-1]), estimate_tokens(seen[-1])))
    return rows


def _agent(seen: list[list[Item]]) -> "Agent":
    """Build an agent whose model looks up a city and then answers. `seen` collects its requests."""
    from agents import Agent, function_tool
    from agents.testing import ModelStep, ScriptedModel

    @function_tool
    def look_up(city: str) -> str:
        """What a guide says of a city."""
        return " ".join(f"{city} has a sight number {n}, open from nine to five." for n in range(1, 25))

    def respond(call: "ModelCall") -> list[Any]:
        seen.append(list(call.input))
        return _respond(len(seen), call.input)

    steps = [ModelStep.respond(respond) for _ in range(2 * len(_CITIES))]
    return Agent(name="Guide", model=ScriptedModel(steps), tools=[look_up])


def _respond(number: int, items: list[Any]) -> list[Any]:
    from agents.testing import assistant_message, function_call

    city = _CITIES[(number - 1) // 2]
    if items[-1].get("type") != "function_call_output":
        return [function_call("look_up", {"city": city}, call_id=f"call_{number}")]
    return [assistant_message(f"In {city} see the first three sights. It is sunny.", item_id=f"msg_{number}")]
