"""The middleware of LangChain's agents, with a scripted model."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from recollect import MemoryStore
from recollect.integrations.blocking import run_blocking
from recollect.integrations.langchain import MemoryMiddleware
from recollect.testing.contract import in_event_loop

from .. import prompts


class RecordingModel(GenericFakeChatModel):
    """A model that always says the same, and keeps the prompts."""

    seen: list[list[prompts.Block]]

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> Any:
        roles = {"human": "user", "ai": "assistant"}
        self.seen.append(
            [prompts.Block(roles.get(each.type, each.type), str(each.text)) for each in messages]
        )
        return super()._generate(messages, *given, **more)


@pytest.mark.parametrize("with_thread", [True, False])
@in_event_loop
async def test_prompts_keep_their_prefix(with_thread: bool) -> None:
    model = RecordingModel(messages=(AIMessage("Noted.") for _ in prompts.QUESTIONS), seen=[])
    async with MemoryStore(":memory:", workers=0, embedder=None) as store:
        saver = InMemorySaver() if with_thread else None
        middleware = [MemoryMiddleware(store, "ada", agent_id="desk")]
        agent: Any = create_agent(model, system_prompt="Be brief.", middleware=middleware, checkpointer=saver)
        ask, history = asker(agent, with_thread)
        await prompts.converse(store, "desk", "ada", ask)
    assert len(history) == 2 * len(prompts.QUESTIONS)
    assert "remembered-data" not in str(history)
    prompts.check(model.seen)


def asker(agent: Any, with_thread: bool) -> tuple[Callable[[str], Awaitable[None]], list[Any]]:
    """A function that asks an agent, and the messages of its state."""
    history: list[Any] = []
    config = {"configurable": {"thread_id": "one"}} if with_thread else {}

    async def ask(question: str) -> None:
        earlier = [] if with_thread else history
        state = await agent.ainvoke({"messages": [*earlier, ("user", question)]}, config)
        history[:] = state["messages"]

    return ask, history


def test_it_works_without_an_event_loop() -> None:
    model = RecordingModel(messages=iter([AIMessage("Noted.")]), seen=[])
    store = MemoryStore(":memory:", workers=0, embedder=None)
    agent: Any = create_agent(model, middleware=[MemoryMiddleware(store, "ada")])
    agent.invoke({"messages": [("user", "Hello.")]})
    assert model.seen == [[prompts.Block("user", "Hello.")]]
    run_blocking(store.aclose())
