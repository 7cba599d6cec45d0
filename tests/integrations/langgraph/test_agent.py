"""LangChain's `create_agent`: interrupted, resumed in another process, forked, pruned and learned from."""

import asyncio
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from recollect.integrations.langgraph import Checkpointer, Store
from recollect.testing.contract import in_event_loop

from .agent import CALL, USER, travel_agent
from .graphs import config_of

ROOT = Path(__file__).parents[3]


@in_event_loop
async def test_an_agent_is_resumed_in_another_process_forked_and_pruned(shared_url: str) -> None:
    thread = uuid4().hex
    config = config_of(thread, user_id=USER)
    async with (
        Checkpointer(shared_url, create_tables=True, learn=True) as checkpointer,
        Store(shared_url, embedder=None, create_tables=True) as store,
    ):
        agent = travel_agent(checkpointer, store, CALL)
        paused = await agent.ainvoke({"messages": [HumanMessage("A train, please.")]}, config)
        (asked,) = paused["__interrupt__"][0].value["action_requests"]
        assert (asked["name"], asked["args"]) == ("book", {"train": "09:39"})
        command = [sys.executable, "-m", "tests.integrations.langgraph.agent", "resume", shared_url, thread]
        other = await asyncio.to_thread(
            subprocess.run, command, cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert other.stdout == "You are booked.\n"

        messages = (await agent.aget_state(config)).values["messages"]
        assert [type(each) for each in messages] == [HumanMessage, AIMessage, ToolMessage, AIMessage]
        assert messages[2].content == "booked 09:39"
        booked = await store.aget((USER, "bookings"), "09:39")
        assert booked is not None

        history = [each async for each in agent.aget_state_history(config)]
        before = next(each for each in history if each.values.get("messages", [])[1:] == [])
        forked = await agent.aupdate_state(before.config, {"messages": [HumanMessage("Or a bus?")]})
        again = travel_agent(checkpointer, store, AIMessage("There is none."))
        done = await again.ainvoke(None, forked)
        assert [each.content for each in done["messages"]][-2:] == ["Or a bus?", "There is none."]
        untouched = await agent.aget_state(history[0].config)
        assert untouched.values["messages"] == messages

        await checkpointer.aprune([thread])
        assert len([each async for each in checkpointer.alist(config_of(thread))]) == 1
        kept = (await again.aget_state(config)).values["messages"]
        assert [each.content for each in kept] == [each.content for each in done["messages"]]
        memory = checkpointer.memory
        assert memory is not None
        outlines = await memory.list_conversations("assistant", USER)
        assert thread in [outline["session_id"] for outline in outlines]
