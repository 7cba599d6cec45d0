"""A process that runs a graph: `worker.py resume|turns|steps|steps-on <url> <thread> [<count>]`."""

import asyncio
import operator
import sys
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from recollect.integrations.langgraph import Checkpointer

from .graphs import approval_graph, ask, chat_graph, config_of


class Steps(TypedDict):
    """A state that each superstep adds to."""

    numbers: Annotated[list[dict[str, int]], operator.add]
    total: int


def steps_graph(checkpointer: Any, count: int) -> Any:
    """A graph of so many supersteps. Each prints its number when it begins."""

    def step(state: Steps) -> dict[str, Any]:
        number = len(state["numbers"])
        print(number, flush=True)
        return {"numbers": [{"number": number}], "total": state["total"] + number}

    builder = StateGraph(Steps)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if len(state["numbers"]) < count else END)
    return builder.compile(checkpointer=checkpointer)


async def main(mode: str, url: str, thread_id: str, count: int) -> None:
    """Do what the mode says."""
    async with Checkpointer(url, create_tables=True) as checkpointer:
        if mode == "resume":
            done = await approval_graph(checkpointer).ainvoke(Command(resume="yes"), config_of(thread_id))
            print(*done["log"], sep="|")
        elif mode == "turns":
            for number in range(count):
                await chat_graph(checkpointer).ainvoke(ask(f"{number}"), config_of(thread_id))
        else:
            config = {**config_of(thread_id), "recursion_limit": count + 5}
            given = {"numbers": [], "total": 0} if mode == "steps" else None
            # With "sync", a step begins only after the checkpoint before it is stored.
            await steps_graph(checkpointer, count).ainvoke(given, config, durability="sync")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 0))
