"""What a run cost."""

from typing import Any

from ..values import ChatUsage


def usage_of(result: Any) -> ChatUsage:
    """What a run of the SDK has cost so far."""
    usage = result.context_wrapper.usage
    return ChatUsage(usage.requests or 0, usage.input_tokens or 0, usage.output_tokens or 0)
