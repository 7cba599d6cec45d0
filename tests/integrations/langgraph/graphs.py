"""Graphs of the tests, on which real runs are made."""

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt


class Chat(TypedDict):
    """The state of a chat."""

    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]


def config_of(thread_id: str, **more: Any) -> RunnableConfig:
    """The config of a thread."""
    return {"configurable": {"thread_id": thread_id, **more}}


def ask(text: str) -> dict[str, Any]:
    """The input of a turn."""
    return {"messages": [HumanMessage(text)], "log": [f"asked {text}"]}


def answer(state: Chat) -> dict[str, Any]:
    """Answer the last message."""
    last = state["messages"][-1].content
    return {"messages": [AIMessage(f"re: {last}")], "log": [f"answered {last}"]}


def approve(state: Chat) -> dict[str, Any]:
    """Wait for a person, and write down what they say."""
    said = interrupt({"approve": state["messages"][-1].content})
    return {"log": [f"approved {said}"]}


def chat_graph(checkpointer: BaseCheckpointSaver[Any]) -> Any:
    """A graph that answers."""
    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=checkpointer)


def approval_graph(checkpointer: BaseCheckpointSaver[Any]) -> Any:
    """A graph that waits for a person before it answers."""
    builder = StateGraph(Chat)
    builder.add_node("approve", approve)
    builder.add_node("answer", answer)
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=checkpointer)


def texts(messages: list[AnyMessage]) -> list[Any]:
    """The contents of messages."""
    return [message.content for message in messages]
