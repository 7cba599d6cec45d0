"""What a run cost."""

from typing import Any

from ...items import ModelUsage
from ...models.values import MOST_TOKENS


def usage_of(result: Any) -> ModelUsage:
    """What a run of the SDK has cost so far."""
    usage = result.context_wrapper.usage
    counts = (usage.requests or 0, usage.input_tokens or 0, usage.output_tokens or 0)
    return ModelUsage(*(min(count, MOST_TOKENS) for count in counts))
