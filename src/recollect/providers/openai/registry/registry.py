"""The agents that the service knows, by name."""

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ....extras import require_extra
from ...errors import UnknownAgentError
from .descriptor import DEFAULT_AGENT, AgentConfigError, AgentDescriptor, key_of, read_descriptor
from .tools import find_tools, read_model_settings

if TYPE_CHECKING:
    from agents import Agent, Model, Tool

Instructions: TypeAlias = "str | Callable[[Any, Any], Any]"
"""What the SDK takes as instructions: a text, or a function of a run's context and an agent."""


class AgentRegistry:
    """Descriptors of agents, from a file or from code, and the agents of the Agents SDK made from them.

    There is always an agent `assistant`. Handoffs may go in circles. What a descriptor says is checked when
    it is added, and its handoffs when an agent is built, or before that by `check()`.
    """

    def __init__(self, descriptors: Iterable[AgentDescriptor] = ()) -> None:
        self._descriptors = {DEFAULT_AGENT.name: DEFAULT_AGENT}
        self._tools: dict[str, list[Tool]] = {DEFAULT_AGENT.name: []}
        for descriptor in descriptors:
            self.add(descriptor)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """The agents of a file, each a table `[agents.NAME]` with the fields of a descriptor, all checked."""
        try:
            told = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise AgentConfigError("*", f"the file {str(path)!r}", f"cannot be read: {error}") from error
        for field in told.keys() - {"agents"}:
            raise AgentConfigError("*", field, "is unknown; agents are tables [agents.NAME]")
        tables = told.get("agents", {})
        if not isinstance(tables, dict):
            raise AgentConfigError("*", "agents", "must be tables [agents.NAME]")
        registry = cls(read_descriptor(name, table) for name, table in tables.items())
        registry.check()
        return registry

    def add(self, descriptor: AgentDescriptor) -> None:
        """Add an agent, once its tools are imported; one of the name `assistant` replaces the built-in."""
        taken = {key_of(name): name for name in self._descriptors}
        other = taken.get(key_of(descriptor.name))
        if other is not None and not (other == descriptor.name and self.get(other) is DEFAULT_AGENT):
            raise AgentConfigError(descriptor.name, "name", f"is the same as that of the agent {other!r}")
        read_model_settings(descriptor)
        self._tools[descriptor.name] = find_tools(descriptor)
        self._descriptors[descriptor.name] = descriptor

    def get(self, name: str) -> AgentDescriptor:
        """The descriptor of an agent; an `UnknownAgentError`, which says who there is, if there is none."""
        if name not in self._descriptors:
            raise UnknownAgentError(name, self.names())
        return self._descriptors[name]

    def names(self) -> list[str]:
        """The names of all agents, in order."""
        return sorted(self._descriptors)

    def check(self) -> None:
        """Refuse handoffs to agents that are not there."""
        for descriptor in self._descriptors.values():
            for other in descriptor.handoffs:
                if other not in self._descriptors:
                    reason = f"names {other!r}, and there are {', '.join(self.names())}"
                    raise AgentConfigError(descriptor.name, "handoffs", reason)

    def build(
        self,
        name: str,
        *,
        instructions: Callable[[AgentDescriptor], Instructions] | None = None,
        model: "str | Model | None" = None,
    ) -> "Agent[Any]":
        """An agent of the SDK, with those that it may hand over to, all made for this call.

        `instructions` says for each descriptor what that agent is told, instead of its own text. `model` is
        for agents that name none; where it is not given, they have the SDK's default.
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
        settings = read_model_settings(descriptor)
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
        """An agent and all to whom a run of it may come."""
        found, waiting = {first.name: first}, [first]
        while waiting:
            for name in waiting.pop().handoffs:
                if name not in found:
                    found[name] = self.get(name)
                    waiting.append(found[name])
        return list(found.values())


def _handoff(agent: "Agent[Any]") -> Any:
    # Named here, as the SDK would name it but with a warning for each name with a dash.
    return _sdk().handoff(agent, tool_name_override=f"transfer_to_{key_of(agent.name)}")


def _sdk() -> Any:
    return require_extra("agents", "agents", "AgentRegistry")
