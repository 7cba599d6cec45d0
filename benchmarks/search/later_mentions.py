"""`python -m benchmarks.search.later_mentions`: whether a later mention that changes nothing leads the block.

Each case is what a user said, what they mentioned a month later about somebody or something else, and a
question about the first. Rules and numbers were not chosen with these cases.
"""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from recollect import MemoryStore

CASES: list[dict[str, str]] = json.loads(
    (Path(__file__).parent / "data" / "later_mentions.json").read_text(encoding="utf-8")
)
_OWNER = ("assistant", "ada")
_FIRST = datetime(2026, 5, 1, 10, tzinfo=UTC)
_TIMEOUT = 60.0  # seconds to learn from two messages


class Shown(NamedTuple):
    """What the block of a case shows."""

    question: str
    is_right: bool
    """Whether a line has what holds."""
    is_misled: bool
    """Whether the first line is the later mention."""


async def measure() -> list[Shown]:
    """Ask the question of each case."""
    return [await _ask(case) for case in CASES]


async def _ask(case: Mapping[str, str]) -> Shown:
    async with MemoryStore(":memory:") as store:
        for days, said in ((0, case["said"]), (30, case["mentioned"])):
            at = (_FIRST + timedelta(days=days)).isoformat()
            await store.record_conversation(*_OWNER, [{"role": "user", "content": said, "created_at": at}])
        await store.drain(timeout=_TIMEOUT)
        lines = [line.text for line in (await store.recall(case["question"], *_OWNER)).lines]
    first = lines[0] if lines else ""
    is_right = any(case["right"] in line for line in lines)
    return Shown(case["question"], is_right, case["other"] in first and case["right"] not in first)


def main() -> None:
    """Print the figures, and the cases that are not as they should be."""
    shown = asyncio.run(measure())
    print(f"{len(shown)} questions: {sum(each.is_right for each in shown)} show what holds,", end=" ")
    print(f"{sum(each.is_misled for each in shown)} are led by the later mention")
    for each in shown:
        if each.is_misled or not each.is_right:
            print(f"  {each.question}")


if __name__ == "__main__":
    main()
