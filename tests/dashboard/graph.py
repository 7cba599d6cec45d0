"""A thread of LangGraph to look at: a tool is called, a person is asked, and it goes another way."""

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from recollect.integrations.langgraph import Checkpointer

from .story import SCRIPT

THREAD = "a trip/to Porto"


class Journey(TypedDict):
    """The state of the graph."""

    messages: Annotated[list[AnyMessage], add_messages]
    city: str


def look(state: Journey) -> dict[str, Any]:
    """Call a tool."""
    call = {"name": "find_trains", "args": {"to": "Porto"}, "id": f"call-{len(state['messages'])}"}
    found = ToolMessage("09:39 and 11:39", tool_call_id=call["id"])
    return {"messages": [AIMessage("", tool_calls=[call]), found], "city": "Porto"}


def book(state: Journey) -> dict[str, Any]:
    """Ask a person, and book."""
    said = interrupt(f"Shall I book? {SCRIPT}")
    return {"messages": [AIMessage(f"Booked, as you said: {said}. {len(state['messages'])}")]}


def run_a_thread(database: str) -> str:
    """Run the graph: one turn to its end, and a fork that waits for a person. Returns the thread's id."""
    with Checkpointer(database) as checkpointer:
        builder = StateGraph(Journey)
        builder.add_node("look", look)
        builder.add_node("book", book)
        builder.add_edge(START, "look")
        builder.add_edge("look", "book")
        builder.add_edge("book", END)
        graph = builder.compile(checkpointer=checkpointer)
        config: Any = {"configurable": {"thread_id": THREAD, "user_id": "ada"}}
        graph.invoke({"messages": [HumanMessage("A train to Porto, please.")]}, config)
        graph.invoke(Command(resume="the window seat"), config)
        begin = next(each for each in graph.get_state_history(config) if each.next == ("look",))
        other = graph.update_state(begin.config, {"messages": [HumanMessage(f"Or by bus? {SCRIPT}")]})
        graph.invoke(None, other)
    return THREAD
