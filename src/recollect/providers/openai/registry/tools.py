"""The tools of agents, imported by the names of their modules and functions."""

from collections.abc import Mapping
from functools import reduce
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

from ....extras import require_extra
from .descriptor import AgentConfigError, AgentDescriptor

if TYPE_CHECKING:
    from agents import ModelSettings, Tool


def find_tools(descriptor: AgentDescriptor) -> list["Tool"]:
    """Import the tools of an agent; raises an `AgentConfigError` if one cannot be imported."""
    found = [_find_tool(descriptor.name, tool_name) for tool_name in descriptor.tools]
    names = [tool.name for tool in found]
    for name in names:
        if names.count(name) > 1:
            raise AgentConfigError(descriptor.name, "tools", f"has two tools with the name {name!r}")
    return found


def read_model_settings(descriptor: AgentDescriptor) -> "ModelSettings | None":
    """The SDK's settings of an agent's model; raises an `AgentConfigError` if they are invalid."""
    given = descriptor.model_settings
    if given is None:
        return None
    agents = _sdk()
    known = agents.ModelSettings.__dataclass_fields__
    for field in given:
        if field not in known:
            raise AgentConfigError(descriptor.name, "model_settings", f"has an unknown field {field!r}")
    return _make_settings(descriptor.name, given)


def _make_settings(agent: str, given: Mapping[str, Any]) -> "ModelSettings":
    try:
        settings: ModelSettings = _sdk().ModelSettings(**given)
    except (TypeError, ValueError) as error:
        # The message of the error quotes the value, which may be a header with a key.
        places = [str(each["loc"][0]) for each in getattr(error, "errors", list)() if each["loc"]]
        named = ", ".join(dict.fromkeys(places)) or "a field"
        raise AgentConfigError(agent, "model_settings", f"has an invalid value: {named}") from None
    return settings


def _find_tool(agent: str, tool_name: str) -> "Tool":
    made = _import(agent, tool_name)
    sdk = _sdk()
    if isinstance(made, tuple(get_origin(kind) or kind for kind in get_args(sdk.Tool))):
        return cast("Tool", made)
    if not isinstance(made, FunctionType):
        raise AgentConfigError(agent, "tools", f"has {tool_name!r}, which is neither a tool nor a function")
    try:
        tool: Tool = sdk.function_tool(made)
    except (sdk.UserError, RuntimeError, TypeError, ValueError) as error:
        raise AgentConfigError(agent, "tools", f"has {tool_name!r}, which cannot become a tool") from error
    return tool


def _import(agent: str, tool_name: str) -> object:
    module, _, path = tool_name.partition(":")
    try:
        found: object = reduce(getattr, path.split("."), import_module(module))
    except Exception as error:  # the import of a module may raise anything
        raise AgentConfigError(agent, "tools", f"has {tool_name!r}, which cannot be imported") from error
    return found


def _sdk() -> Any:
    return require_extra("agents", "agents", "AgentRegistry")
