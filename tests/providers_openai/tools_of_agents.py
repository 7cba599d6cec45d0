"""Tools that agents in these tests have."""

import asyncio
import os

from agents import RunContextWrapper, function_tool

from recollect.providers.openai.context import ChatContext


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool
async def look_back(context: RunContextWrapper[ChatContext], query: str) -> str:
    """Search what the user said before."""
    found = await context.context.search_conversations(query, limit=5)
    return " ".join(hit.message.content for hit in found.hits)


@function_tool(failure_error_function=None)
def explode(secret: str) -> str:
    """Fail, in a way that ends the run."""
    raise ValueError(f"this tool knows {secret}")


def die() -> str:
    """End the process at once, as `kill -9` does."""
    os._exit(9)


async def hang() -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return "never"
