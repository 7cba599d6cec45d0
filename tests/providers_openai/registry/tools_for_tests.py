"""Tools that descriptors name, good ones and bad ones."""

import asyncio

from agents import WebSearchTool, function_tool


def look_up(order: str) -> str:
    """Look up an order.

    Args:
        order: its number.
    """
    return f"{order} is on its way"


@function_tool
def refund(order: str) -> str:
    """Give the money back."""
    return f"{order} is refunded"


@function_tool(name_override="look_up")
def another_look_up() -> str:
    """Has the name of another."""
    return ""


def takes_what_no_schema_can_tell(loop: asyncio.AbstractEventLoop) -> str:
    """No model could call it."""
    return str(loop)


class Desk:
    """Holds a tool."""

    search = WebSearchTool()


NUMBER = 7
