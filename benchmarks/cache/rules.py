"""The published rules of prompt caches, and what a sequence of prompts costs by them: pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recollect.items import estimate_text_tokens

Prompt = Sequence[str]
"""The texts of a prompt, in the order in which the model reads them."""


@dataclass(frozen=True)
class Rules:
    """How a provider caches prefixes. Prices are multiples of that of an uncached input token."""

    name: str
    least: int
    """The fewest tokens of a prefix."""
    step: int
    """A prefix is a multiple of so many tokens."""
    read: float
    write: float
    seconds: float
    """For how long a prefix that nobody sends is kept."""


# OpenAI: 1,024 tokens, steps of 128, 5 to 10 minutes, at first half the price, and a tenth for newer models.
# https://openai.com/index/api-prompt-caching/ https://developers.openai.com/api/docs/guides/prompt-caching
# Anthropic: 1,024 tokens for Sonnet, 5 minutes, write 1.25, read 0.1, a breakpoint at the newest message.
# https://docs.claude.com/en/docs/build-with-claude/prompt-caching
RULES = (
    Rules("OpenAI, read at a half", 1024, 128, 0.5, 1.0, 300),
    Rules("OpenAI, read at a tenth", 1024, 128, 0.1, 1.0, 300),
    Rules("Anthropic, Sonnet", 1024, 1, 0.1, 1.25, 300),
)


class Sent(NamedTuple):
    """A prompt that was sent, and how many of its texts are up to the newest message of the user."""

    prompt: Prompt
    question: int
    at: float


def cost(sent: Sequence[Sent], rules: Rules) -> tuple[float, int]:
    """What prompts of one conversation cost, in uncached input tokens, and how many tokens were cached."""
    total, cached_tokens = 0.0, 0
    before: Sent | None = None
    for each in sent:
        shared = 0
        if before is not None and each.at - before.at <= rules.seconds:
            shared = _cacheable(_shared(before.prompt, each.prompt), rules)
        tokens = sum(map(estimate_text_tokens, each.prompt))
        written = 0
        if rules.write > 1:
            written = _cacheable(sum(map(estimate_text_tokens, each.prompt[: each.question])), rules) - shared
        total += tokens - shared + shared * rules.read + max(0, written) * (rules.write - 1)
        cached_tokens += shared
        before = each
    return total, cached_tokens


def _shared(one: Prompt, other: Prompt) -> int:
    """The tokens of the texts with which both prompts begin."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += estimate_text_tokens(left)
    return count


def _cacheable(tokens: int, rules: Rules) -> int:
    return 0 if tokens < rules.least else tokens - tokens % rules.step
