"""The registry: from code and from a file, and the agents that it builds."""

import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, FunctionTool, WebSearchTool
from agents.testing import ScriptedModel

from recollect import RecollectError
from recollect.providers.openai.registry import (
    DEFAULT_AGENT,
    AgentConfigError,
    AgentDescriptor,
    AgentRegistry,
    UnknownAgentError,
)

HERE = f"{__package__}.tools_for_tests"

SHOP = f"""
[agents.support]
instructions = "Help with orders."
model = "gpt-4.1-mini"
description = "Knows orders."
tools = ["{HERE}:look_up", "{HERE}:refund", "{HERE}:Desk.search"]
handoffs = ["billing-desk"]
memory_injection_default = true
max_turns = 4
memory_strategy_defaults = {{ mode = "trim", max_user_turns = 20 }}
model_settings = {{ temperature = 0.2 }}

[agents.billing-desk]
instructions = "Help with bills."
handoffs = ["support"]
"""


def from_text(text: str, folder: Path) -> AgentRegistry:
    file = folder / "agents.toml"
    file.write_text(text, encoding="utf-8")
    return AgentRegistry.from_toml(file)


def target(agent: Agent[Any], number: int = 0) -> Any:
    """The agent that a handoff leads to."""
    handoff: Any = agent.handoffs[number]
    return handoff._agent_ref()


def test_there_is_always_an_assistant() -> None:
    assert AgentRegistry().names() == ["assistant"]
    assert AgentRegistry().build("assistant").instructions == DEFAULT_AGENT.instructions


def test_the_assistant_can_be_replaced_but_once() -> None:
    registry = AgentRegistry([AgentDescriptor("assistant", "Be a pirate.")])
    assert registry.get("assistant").instructions == "Be a pirate."
    with pytest.raises(AgentConfigError, match="name conflicts with the agent 'assistant'"):
        registry.add(AgentDescriptor("assistant", "Be a sailor."))


@pytest.mark.parametrize("name", ["my_agent", "My-Agent", "my.agent"])
def test_two_names_that_are_one_to_a_model_are_refused(name: str) -> None:
    registry = AgentRegistry([AgentDescriptor("my-agent", "Help.")])
    with pytest.raises(AgentConfigError, match="conflicts with the agent 'my-agent'"):
        registry.add(AgentDescriptor(name, "Help."))


def test_an_unknown_agent_is_an_error_that_says_who_there_is() -> None:
    with pytest.raises(UnknownAgentError, match="no agent 'nobody'; there are assistant") as caught:
        AgentRegistry().get("nobody")
    assert isinstance(caught.value, RecollectError)
    assert isinstance(caught.value, LookupError)


def test_a_file_gives_agents_with_all_their_fields(tmp_path: Path) -> None:
    registry = from_text(SHOP, tmp_path)
    assert registry.names() == ["assistant", "billing-desk", "support"]
    agent = registry.build("support")
    assert agent.name == "support"
    assert agent.instructions == "Help with orders."
    assert agent.model == "gpt-4.1-mini"
    assert agent.handoff_description == "Knows orders."
    assert agent.model_settings.temperature == 0.2
    assert [type(tool) for tool in agent.tools] == [FunctionTool, FunctionTool, WebSearchTool]
    assert [tool.name for tool in agent.tools] == ["look_up", "refund", "web_search"]
    assert registry.get("support").max_turns == 4


def test_agents_may_hand_over_in_circles(tmp_path: Path) -> None:
    support = from_text(SHOP, tmp_path).build("support")
    billing = target(support)
    assert billing.name == "billing-desk"
    assert target(billing) is support
    assert getattr(support.handoffs[0], "tool_name", None) == "transfer_to_billing_desk"


def test_each_build_gives_agents_of_its_own(tmp_path: Path) -> None:
    registry = from_text(SHOP, tmp_path)
    first, second = registry.build("support"), registry.build("support")
    assert first is not second
    assert first.tools is not second.tools
    assert target(first) is not target(second)


def test_a_model_by_name_is_for_agents_that_name_none(tmp_path: Path) -> None:
    support = from_text(SHOP, tmp_path).build("support", model="other")
    assert support.model == "gpt-4.1-mini"
    assert target(support).model == "other"


def test_a_model_as_an_object_is_for_agents_that_name_none(tmp_path: Path) -> None:
    model = ScriptedModel([])
    support = from_text(SHOP, tmp_path).build("support", model=model)
    assert support.model == "gpt-4.1-mini"
    assert target(support).model is model


def test_instructions_are_given_to_each_agent(tmp_path: Path) -> None:
    support = from_text(SHOP, tmp_path).build(
        "support", instructions=lambda descriptor: f"{descriptor.instructions} Be brief."
    )
    assert support.instructions == "Help with orders. Be brief."
    assert target(support).instructions == "Help with bills. Be brief."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("agents = 3", "agents must be tables"),
        ("[agent.a]", "agent is unknown"),
        ("[agents.a", "cannot be read"),
        (
            "[agents.a]\ninstructions = 'x'\nhandoffs = ['b']",
            "agent 'a': handoffs names the unknown agent",
        ),
        ("[agents.a]\ninstructions = 'x'\ntemperature = 1", "agent 'a': temperature is unknown"),
        ("[agents.'a b']\ninstructions = 'x'", "agent 'a b': name must be"),
        (
            "[agents.a]\ninstructions = 'x'\nmodel_settings = {heat = 1}",
            "settings has an unknown field",
        ),
        (
            "[agents.a]\ninstructions = 'x'\nmodel_settings = {temperature = 'SECRET'}",
            "agent 'a': model_settings has an invalid value: temperature$",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_agent_and_field(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(AgentConfigError, match=reason):
        from_text(text, tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgentConfigError, match=r"none\.toml"):
        AgentRegistry.from_toml(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        (["no_such_module_at_all:f"], "cannot be imported"),
        ([f"{HERE}:nothing"], "cannot be imported"),
        ([f"{__package__}.broken_tools:f"], "cannot be imported"),
        ([f"{HERE}:NUMBER"], "neither a tool nor a function"),
        ([f"{HERE}:takes_what_no_schema_can_tell"], "cannot become a tool"),
        ([f"{HERE}:look_up", f"{HERE}:another_look_up"], "two tools with the name 'look_up'"),
    ],
)
def test_a_tool_that_cannot_be_had_is_refused_when_it_is_added(tools: list[str], reason: str) -> None:
    with pytest.raises(AgentConfigError, match=reason) as caught:
        AgentRegistry([AgentDescriptor("support", "Help.", tools=tuple(tools))])
    assert (caught.value.agent, caught.value.field) == ("support", "tools")


def test_an_agent_that_was_refused_is_not_there() -> None:
    registry = AgentRegistry()
    with pytest.raises(AgentConfigError):
        registry.add(AgentDescriptor("support", "Help.", tools=("no_such_module_at_all:f",)))
    assert registry.names() == ["assistant"]
    assert "no_such_module_at_all" not in sys.modules


def test_from_code_handoffs_may_come_before_their_agents() -> None:
    registry = AgentRegistry([AgentDescriptor("a", "x", handoffs=("b",))])
    with pytest.raises(AgentConfigError, match="handoffs names the unknown agent 'b'"):
        registry.build("a")
    registry.add(AgentDescriptor("b", "y", handoffs=("a",)))
    assert target(registry.build("a")).name == "b"
