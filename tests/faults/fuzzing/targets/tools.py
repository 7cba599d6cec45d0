"""What models call tools with, over MCP."""

from typing import Any

from pydantic import ValidationError

from recollect.mcp.arguments import describe_errors
from recollect.mcp.tools import TOOLS

from ..supply import Supply

_TOOLS = tuple(TOOLS.values())


def check_tool_calls(data: bytes) -> None:
    """The arguments of a tool are what it takes, or are refused in words that do not repeat them."""
    supply = Supply(data)
    tool = supply.choose(_TOOLS)
    names = (*tool.arguments.model_fields, "other")
    given: Any = {supply.choose(names): supply.value() for _ in range(supply.number(5))}
    if supply.byte() % 8 == 0:
        given = supply.value()
    try:
        tool.arguments.model_validate(given)
    except ValidationError as error:
        told = describe_errors(error)
        assert told
        names = given if isinstance(given, dict) else ()
        # A name that is unknown is told, shortened; a value never is.
        assert "secret" not in told or any("secret" in name for name in names), "what was given is repeated"
