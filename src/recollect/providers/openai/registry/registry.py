"""The registry of agents, by name."""

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ....extras import require_extra
from ...errors import UnknownAgentError
from .descriptor import DEFAULT_AGENT, AgentConfigError, AgentDescriptor, handoff_key, read_descriptor
from .tools import find_tools, read_model_settings

if TYPE_CHECKING:
    from agents import Agent, Model, ModelSettings, Tool

Instructions: TypeAlias = "str | Callable[[Any, Any], Any]"
"""The instructions of an SDK agent: a text, or a function of the run's context and the agent."""


class AgentRegistry:
    """The descriptors of agents, from a file or from code, and the SDK agents built from them.

    The agent `assistant` always exists. Handoffs may form cycles. A descriptor is checked when it is added,
    and its handoffs when an agent is built, or earlier by `check()`.
    """

    def __init__(self, descriptors: Iterable[AgentDescriptor] = ()) -> None:
        self._descriptors = {DEFAULT_AGENT.name: DEFAULT_AGENT}
        self._tools: dict[str, list[Tool]] = {DEFAULT_AGENT.name: []}
        self._model_settings: dict[str, ModelSettings | None] = {DEFAULT_AGENT.name: None}
        for descriptor in descriptors:
            self.add(descriptor)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """The agents of a TOML file. Each is a table `[agents.NAME]` with the fields of a descriptor.

        Raises an `AgentConfigError` if the file cannot be read or an agent is invalid.
        """
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise AgentConfigError("*", f"the file {str(path)!r}", f"cannot be read: {error}") from error
        for field in document.keys() - {"agents"}:
            raise AgentConfigError("*", field, "is unknown; agents are tables [agents.NAME]")
        tables = document.get("agents", {})
        if not isinstance(tables, dict):
            raise AgentConfigError("*", "agents", "must be tables [agents.NAME]")
        registry = cls(read_descriptor(name, table) for name, table in tables.items())
        registry.check()
        return registry

    def add(self, descriptor: AgentDescriptor) -> None:
        """Import the tools of an agent and add it. An agent `assistant` replaces the built-in one."""
        taken = {handoff_key(name): name for name in self._descriptors}
        other = taken.get(handoff_key(descriptor.name))
        if other is not None and not (other == descriptor.name and self.get(other) is DEFAULT_AGENT):
            raise AgentConfigError(descriptor.name, "name", f"conflicts with the agent {other!r}")
        model_settings = read_model_settings(descriptor)
        self._tools[descriptor.name] = find_tools(descriptor)
        self._model_settings[descriptor.name] = model_settings
        self._descriptors[descriptor.name] = descriptor

    def get(self, name: str) -> AgentDescriptor:
        """The descriptor of an agent; raises an `UnknownAgentError` that lists the known agents."""
        if name not in self._descriptors:
            raise UnknownAgentError(name, self.names())
        return self._descriptors[name]

    def names(self) -> list[str]:
        """The names of all agents, sorted."""
        return sorted(self._descriptors)

    def check(self) -> None:
        """Raise an `AgentConfigError` for a handoff to an unknown agent."""
        for descriptor in self._descriptors.values():
            for other in descriptor.handoffs:
                if other not in self._descriptors:
                    reason = f"names the unknown agent {other!r}; the agents are {', '.join(self.names())}"
                    raise AgentConfigError(descriptor.name, "handoffs", reason)

    def build(
        self,
        name: str,
        *,
        instructions: Callable[[AgentDescriptor], Instructions] | None = None,
        model: "str | Model | None" = None,
    ) -> "Agent[Any]":
        """A new SDK agent, with new agents for all its handoffs.

        `instructions` returns the instructions for a descriptor, in place of its own text. `model` is for
        agents that name none; without it, they have the SDK's default.
        """
        self.check()
        built = {
            each.name: self._agent(each, instructions, model) for each in self._reachable(self.get(name))
        }
        for each, agent in built.items():
            agent.handoffs = [_handoff(built[other]) for other in self.get(each).handoffs]
        return built[name]

    def _agent(
        self,
        descriptor: AgentDescriptor,
        instructions: Callable[[AgentDescriptor], Instructions] | None,
        model: "str | Model | None",
    ) -> "Agent[Any]":
        settings = self._model_settings[descriptor.name]
        agent: Agent[Any] = _sdk().Agent(
            name=descriptor.name,
            handoff_description=descriptor.description or None,
            instructions=descriptor.instructions if instructions is None else instructions(descriptor),
            model=descriptor.model or model,
            tools=list(self._tools[descriptor.name]),
            **({} if settings is None else {"model_settings": settings}),
        )
        return agent

    def _reachable(self, first: AgentDescriptor) -> list[AgentDescriptor]:
        """An agent and all agents that its handoffs can reach."""
        found, waiting = {first.name: first}, [first]
        while waiting:
            for name in waiting.pop().handoffs:
                if name not in found:
                    found[name] = self.get(name)
                    waiting.append(found[name])
        return list(found.values())


def _handoff(agent: "Agent[Any]") -> Any:
    # The same name as the SDK's own, which would log a warning for each name with a dash.
    return _sdk().handoff(agent, tool_name_override=f"transfer_to_{handoff_key(agent.name)}")


def _sdk() -> Any:
    return require_extra("agents", "agents", "AgentRegistry")
