"""The tokens of a call: what the provider says, else an estimate of what was said."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...items import estimate_text_tokens
from .answers import read_answer, read_usage
from .values import Dialect, Said

_PARTS = (
    *("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"),
    *("cache_creation_input_tokens", "cache_read_input_tokens"),
)
_MOST = 10**9  # tokens of one call: a provider that says more is not believed


def tokens_of(encoding: str, content: bytes, dialect: Dialect | None, said: Sequence[Said]) -> int:
    """The tokens of an answered call."""
    given = total_in(read_usage(encoding, content))
    return _estimate(encoding, content, dialect, said) if given is None else given


def total_in(reports: Iterable[Mapping[str, Any]]) -> int | None:
    """The tokens in the reports of one answer, of which a later one completes an earlier one."""
    usage: dict[str, int] = {}
    for report in reports:
        usage |= {name: count for name, count in report.items() if _is_count(count)}
    if "total_tokens" in usage:
        return usage["total_tokens"]
    parts = [usage[name] for name in _PARTS if name in usage]
    return sum(parts) if parts else None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _estimate(encoding: str, content: bytes, dialect: Dialect | None, said: Sequence[Said]) -> int:
    answer = None if dialect is None else read_answer(dialect, encoding, content)
    texts = [each.text for each in said] + [(answer and answer.text) or ""]
    return sum(estimate_text_tokens(text) for text in texts)
