"""An agent with memory, in one call."""

import subprocess
import sys

from agents import function_tool

from recollect import InMemorySession
from recollect.integrations.openai_agents import MemoryHooks, with_memory
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, ToolCall

from .runs import agent_on, asked, instructions_of, output_in, run, store_in_memory, whole_and_streamed


@function_tool
def weather() -> str:
    """The weather."""
    return "sunny"


@whole_and_streamed
@in_event_loop
async def test_an_agent_remembers_a_user_in_another_session(server: ProviderServer, streamed: bool) -> None:
    server.responses.reply(
        ToolCall("remember", {"text": "The user's cat is Mia.", "kind": "profile", "happened_on": None}),
        "Nice.",
        ToolCall("recall", {"query": "cat"}),
        "Mia.",
    )
    async with store_in_memory() as store, agent_on(server) as plain:
        for session, said in (("monday", "My cat is Mia."), ("tuesday", "Who is my cat?")):
            agent, kept_in = with_memory(plain, store, "ada"), InMemorySession(session)
            async with MemoryHooks(store, "desk", "ada", session=kept_in) as hooks:
                await run(agent, said, streamed, session=kept_in, hooks=hooks)
    first, _, third, fourth = asked(server)
    assert instructions_of(first) == "Be brief."
    assert "> - The user's cat is Mia." in instructions_of(third)
    assert ": The user's cat is Mia." in output_in(fourth)
    assert [tool["name"] for tool in first.body["tools"]] == ["recall", "remember"]


@in_event_loop
async def test_the_agent_itself_is_not_changed(server: ProviderServer) -> None:
    async with store_in_memory() as store, agent_on(server, tools=[weather]) as agent:
        copy = with_memory(agent, store, "ada")
        assert [tool.name for tool in agent.tools] == ["weather"]
        assert [tool.name for tool in copy.tools] == ["weather", "recall", "remember"]
        assert agent.instructions == "Be brief."
        assert copy.name == "desk"


@in_event_loop
async def test_tools_can_be_left_out_and_the_agent_id_be_another(server: ProviderServer) -> None:
    server.responses.reply("Lisbon.")
    async with store_in_memory() as store, agent_on(server) as plain:
        await store.add_entry("team", "ada", "profile", "The user lives in Lisbon.")
        agent = with_memory(plain, store, "ada", agent_id="team", tools=False)
        await run(agent, "Lisbon?")
        assert agent.tools == []
    assert "The user lives in Lisbon." in instructions_of(asked(server)[0])


def test_a_missing_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['agents'] = None\n"  # what Python takes for: not to be had
        "import recollect.errors\n"
        "try: import recollect.integrations.openai_agents\n"
        "except recollect.errors.MissingExtraError as error: print(error)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'recollect-memory[agents]'" in ended.stdout
