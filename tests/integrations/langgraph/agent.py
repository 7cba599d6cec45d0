"""An agent of LangChain's `create_agent` with a scripted model: `agent.py resume <url> <thread>` goes on."""

import sys
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime, tool
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.types import Command

from recollect.integrations.langgraph import Checkpointer, Store

from .graphs import config_of

CALL = AIMessage("", tool_calls=[{"name": "book", "args": {"train": "09:39"}, "id": "call-1"}])
USER = "ada"


class ScriptedModel(GenericFakeChatModel):
    """A model that says what its script says, whatever tools it has."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:  # noqa: ARG002
        """The same model: the script calls tools."""
        return self


@tool
def book(train: str, runtime: ToolRuntime) -> str:
    """Book a train."""
    assert runtime.store is not None
    runtime.store.put((USER, "bookings"), train, {"text": f"the train at {train}"})
    return f"booked {train}"


def travel_agent(checkpointer: BaseCheckpointSaver[Any], store: BaseStore, *says: AIMessage) -> Any:
    """An agent that asks a person before it books."""
    return create_agent(
        ScriptedModel(messages=iter(says)),
        [book],
        checkpointer=checkpointer,
        store=store,
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"book": True})],
    )


def main(url: str, thread_id: str) -> None:
    """Approve the call, and let the agent answer."""
    with Checkpointer(url) as checkpointer, Store(url, embedder=None, create_tables=True) as store:
        agent = travel_agent(checkpointer, store, AIMessage("You are booked."))
        approved = Command(resume={"decisions": [{"type": "approve"}]})
        done = agent.invoke(approved, config_of(thread_id, user_id=USER))
        print(done["messages"][-1].content)


if __name__ == "__main__":
    main(*sys.argv[2:])
