"""What a run cost."""

from typing import Any

from ...items import ModelUsage


def usage_of(result: Any) -> ModelUsage:
    """What a run of the SDK has cost so far."""
    usage = result.context_wrapper.usage
    return ModelUsage(usage.requests or 0, usage.input_tokens or 0, usage.output_tokens or 0)
