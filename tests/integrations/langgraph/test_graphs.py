"""Real graphs: turns, interrupts, parallel branches, subgraphs, time travel and streams."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt

from recollect.integrations.langgraph import Checkpointer
from recollect.testing.contract import in_event_loop

from .graphs import Chat, approval_graph, ask, chat_graph, config_of, texts


@in_event_loop
async def test_turns_of_a_thread_add_up(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        graph = chat_graph(checkpointer)
        for number in range(5):
            await graph.ainvoke(ask(f"{number}"), config_of(thread_id))
        state = await graph.aget_state(config_of(thread_id))
        expected = [text for number in range(5) for text in (f"{number}", f"re: {number}")]
        assert texts(state.values["messages"]) == expected
        history = [each async for each in graph.aget_state_history(config_of(thread_id))]
        lengths = [len(each.values.get("messages", [])) for each in history]
        assert lengths == [10, 9, 8, 8, 7, 6, 6, 5, 4, 4, 3, 2, 2, 1, 0]


def test_the_synchronous_methods_do_the_same(url: str, thread_id: str) -> None:
    with Checkpointer(url, create_tables=True) as checkpointer:
        graph = chat_graph(checkpointer)
        streamed = list(graph.stream(ask("a"), config_of(thread_id), stream_mode="updates"))
        assert [list(update) for update in streamed] == [["answer"]]
        graph.invoke(ask("b"), config_of(thread_id))
        assert texts(graph.get_state(config_of(thread_id)).values["messages"]) == ["a", "re: a", "b", "re: b"]
        assert len(list(graph.get_state_history(config_of(thread_id)))) == 6
        checkpointer.prune([thread_id])
        assert texts(graph.get_state(config_of(thread_id)).values["messages"]) == ["a", "re: a", "b", "re: b"]
        assert len(list(checkpointer.list(config_of(thread_id)))) == 1
        checkpointer.copy_thread(thread_id, f"{thread_id}-copy")
        checkpointer.delete_thread(thread_id)
        assert checkpointer.get_tuple(config_of(thread_id)) is None
        graph.invoke(ask("c"), config_of(f"{thread_id}-copy"))
        assert len(graph.get_state(config_of(f"{thread_id}-copy")).values["messages"]) == 6


@in_event_loop
async def test_an_interrupted_run_is_resumed(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        graph = approval_graph(checkpointer)
        paused = await graph.ainvoke(ask("a"), config_of(thread_id))
        assert paused["__interrupt__"][0].value == {"approve": "a"}
        done = await graph.ainvoke(Command(resume="yes"), config_of(thread_id))
        assert done["log"] == ["asked a", "approved yes", "answered a"]


class Parallel(TypedDict):
    """A state that several nodes write in one step."""

    done: Annotated[list[dict[str, Any]], operator.add]


def parallel_graph(checkpointer: Any, runs: list[int]) -> Any:
    """Three branches at once, of which one fails the first time."""
    failures = iter([True])

    def work(state: dict[str, Any]) -> dict[str, Any]:
        runs.append(state["number"])
        if state["number"] == 2 and next(failures, False):
            raise ValueError("the second branch fails once")
        return {"done": [{"number": state["number"]}]}

    builder = StateGraph(Parallel)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _: [Send("work", {"number": n}) for n in (1, 2, 3)])
    builder.add_edge("work", END)
    return builder.compile(checkpointer=checkpointer)


@in_event_loop
async def test_branches_that_finished_are_not_run_again(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        runs: list[int] = []
        graph = parallel_graph(checkpointer, runs)
        with pytest.raises(ValueError, match="fails once"):
            await graph.ainvoke({"done": []}, config_of(thread_id))
        pending = (await checkpointer.aget_tuple(config_of(thread_id))).pending_writes
        finished = {value[0]["number"] for _, channel, value in pending if channel == "done"}
        assert 1 in finished  # the third may have been cancelled
        assert 2 not in finished
        done = await graph.ainvoke(None, config_of(thread_id))
        assert [each["number"] for each in done["done"]] == [1, 2, 3]
        assert all(runs.count(number) == 1 for number in finished)
        assert runs.count(2) == 2


@in_event_loop
async def test_a_subgraph_has_a_namespace_of_its_own(url: str, thread_id: str) -> None:
    def pause(state: Parallel) -> dict[str, Any]:
        return {"done": [{"said": interrupt(len(state["done"]))}]}

    inner = StateGraph(Parallel)
    inner.add_node("pause", pause)
    inner.add_edge(START, "pause")
    async with Checkpointer(url, create_tables=True) as checkpointer:
        outer = StateGraph(Parallel)
        outer.add_node("inner", inner.compile())
        outer.add_edge(START, "inner")
        graph = outer.compile(checkpointer=checkpointer)
        await graph.ainvoke({"done": [{"said": "first"}]}, config_of(thread_id))
        found = [each.config["configurable"] async for each in _all(checkpointer, thread_id)]
        namespaces = {each["checkpoint_ns"] for each in found}
        assert "" in namespaces
        assert len(namespaces) == 2
        state = await graph.aget_state(config_of(thread_id), subgraphs=True)
        assert state.tasks[0].state.values == {"done": [{"said": "first"}]}
        done = await graph.ainvoke(Command(resume="second"), config_of(thread_id))
        assert [each["said"] for each in done["done"]][-1] == "second"


def _all(checkpointer: Checkpointer, thread_id: str) -> Any:
    return checkpointer.alist(config_of(thread_id))


@in_event_loop
async def test_time_travel_keeps_both_branches(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        graph = chat_graph(checkpointer)
        for text in "abc":
            await graph.ainvoke(ask(text), config_of(thread_id))
        history = [each async for each in graph.aget_state_history(config_of(thread_id))]
        before = {each.config["configurable"]["checkpoint_id"]: each.values for each in history}
        after_a = next(each for each in history if len(each.values.get("messages", [])) == 2)
        edited = await graph.aupdate_state(after_a.config, {"messages": [HumanMessage("x")]})
        await graph.ainvoke(ask("d"), edited)
        now = await graph.aget_state(config_of(thread_id))
        assert texts(now.values["messages"]) == ["a", "re: a", "x", "d", "re: d"]
        for checkpoint_id, values in before.items():
            old = await graph.aget_state(config_of(thread_id, checkpoint_id=checkpoint_id))
            assert old.values == values


@in_event_loop
async def test_a_replaced_and_a_removed_message(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        graph = chat_graph(checkpointer)
        for text in "abc":
            await graph.ainvoke(ask(text), config_of(thread_id))
        found = (await graph.aget_state(config_of(thread_id))).values["messages"]
        changes = [AIMessage("new", id=found[1].id), RemoveMessage(id=found[2].id)]
        await graph.aupdate_state(config_of(thread_id), {"messages": changes})
        await graph.ainvoke(ask("d"), config_of(thread_id))
        now = await graph.aget_state(config_of(thread_id))
        assert texts(now.values["messages"]) == ["a", "new", "re: b", "c", "re: c", "d", "re: d"]


def add_all(state: list[str], writes: list[list[str]]) -> list[str]:
    """Add the items of all writes."""
    return [*state, *(item for write in writes for item in write)]


class Deltas(TypedDict):
    """A state with a delta channel."""

    messages: Annotated[list[str], DeltaChannel(add_all, snapshot_frequency=5)]


def delta_graph(checkpointer: Any) -> Any:
    """A graph whose messages are stored as writes, with a snapshot after every five."""
    builder = StateGraph(Deltas)
    builder.add_node("answer", lambda state: {"messages": [f"re: {state['messages'][-1]}"]})
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=checkpointer)


@in_event_loop
async def test_delta_channels_are_replayed_as_langgraph_itself_does(url: str, thread_id: str) -> None:
    """Also after pruning, which keeps the writes that the newest checkpoint needs."""
    async with Checkpointer(url, create_tables=True) as checkpointer:
        graph, reference = delta_graph(checkpointer), delta_graph(InMemorySaver())
        for number in range(9):
            for each in (graph, reference):
                await each.ainvoke({"messages": [f"{number}"]}, config_of(thread_id))
            expected = (await reference.aget_state(config_of(thread_id))).values
            assert (await graph.aget_state(config_of(thread_id))).values == expected
            if number in (1, 6):
                count = len([each async for each in _all(checkpointer, thread_id)])
                await checkpointer.aprune([thread_id])
                kept = len([each async for each in _all(checkpointer, thread_id)])
                assert kept == count if number == 1 else kept < count  # at first, there is no snapshot yet
                assert (await graph.aget_state(config_of(thread_id))).values == expected
        await checkpointer.acopy_thread(thread_id, f"{thread_id}-copy")
        assert (await graph.aget_state(config_of(f"{thread_id}-copy"))).values == expected


@tool
def look_up(city: str) -> str:
    """Say where a city is."""
    return f"{city} is in the north"


def agent_graph(checkpointer: Any, replies: list[AIMessage]) -> Any:
    """An agent that calls tools, as every framework builds it, with a scripted model."""
    model = GenericFakeChatModel(messages=iter(replies))
    builder = StateGraph(Chat)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([look_up]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=checkpointer, interrupt_before=["tools"])


@in_event_loop
async def test_an_agent_that_calls_tools_is_interrupted_and_streams(url: str, thread_id: str) -> None:
    calls = [{"name": "look_up", "args": {"city": "Oslo"}, "id": "c1"}]
    async with Checkpointer(url, create_tables=True) as checkpointer:
        before = agent_graph(checkpointer, [AIMessage("", tool_calls=calls)])
        await before.ainvoke(ask("Where is Oslo?"), config_of(thread_id))
        assert (await before.aget_state(config_of(thread_id))).next == ("tools",)
        after = agent_graph(checkpointer, [AIMessage("In the north.")])
        stream = after.astream(None, config_of(thread_id), stream_mode="updates")
        assert [name async for update in stream for name in update] == ["tools", "model"]
        said = (await after.aget_state(config_of(thread_id))).values["messages"]
        assert texts(said) == ["Where is Oslo?", "", "Oslo is in the north", "In the north."]
        assert said[2].tool_call_id == said[1].tool_calls[0]["id"] == "c1"
