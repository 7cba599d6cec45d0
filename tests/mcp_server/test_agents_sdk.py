"""An agent of the OpenAI Agents SDK that recalls over MCP: the real package, and a scripted provider."""

from pathlib import Path
from typing import Any

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai import AsyncOpenAI

from recollect import MemoryStore
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, ToolCall

from .clients import COMMAND, environment, headers_of, http_server_here, settings_for

QUIET = RunConfig(tracing_disabled=True)


async def answered(
    provider: ProviderServer, memory: MCPServerStdio | MCPServerStreamableHttp
) -> list[dict[str, Any]]:
    """Let an agent recall, and return what the model was shown of it."""
    provider.responses.reply(
        ToolCall("recall", {"query": "Where does the user live?"}), "You live in Lisbon."
    )
    async with memory, AsyncOpenAI(base_url=provider.base_url, api_key=provider.api_key) as client:
        agent = Agent("assistant", model=OpenAIResponsesModel("gpt-4o-mini", client), mcp_servers=[memory])
        result = await Runner.run(agent, "Where do I live?", run_config=QUIET)
    assert result.final_output == "You live in Lisbon."
    offered = {tool["name"] for tool in provider.requests("POST /v1/responses")[0].body["tools"]}
    assert offered == {"remember", "recall", "forget", "why", "list", "page"}
    shown = provider.requests("POST /v1/responses")[1].body["input"]
    return [item for item in shown if item.get("type") == "function_call_output"]


async def fill(database: Path) -> None:
    async with MemoryStore(database, embedder=None, workers=0) as store:
        await store.add_entry("assistant", "ada", "profile", "The user lives in Lisbon.")


@in_event_loop
async def test_an_agent_recalls_over_stdio(server: ProviderServer, tmp_path: Path) -> None:
    await fill(tmp_path / "memory.db")
    command, *arguments = COMMAND
    memory = MCPServerStdio(
        {
            "command": command,
            "args": [*arguments, "--user", "ada"],
            "env": environment(tmp_path / "memory.db"),
        },
        client_session_timeout_seconds=60,
    )
    (output,) = await answered(server, memory)
    assert "<remembered-data>" in str(output["output"])
    assert "The user lives in Lisbon." in str(output["output"])


@in_event_loop
async def test_an_agent_recalls_over_http(server: ProviderServer, tmp_path: Path) -> None:
    await fill(tmp_path / "memory.db")
    with http_server_here(settings_for(tmp_path / "memory.db")) as address:
        memory = MCPServerStreamableHttp(
            {"url": address, "headers": headers_of(user="ada")}, use_structured_content=True
        )
        (output,) = await answered(server, memory)
    assert "<remembered-data>" in str(output["output"]), "what is shown as values is marked as well"
    assert "The user lives in Lisbon." in str(output["output"])
