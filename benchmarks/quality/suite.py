"""The quality of extraction on the LoCoMo conversations, one by one and overall; nothing without data."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Extractor

from ..harness import Measure, Sample, Sampler, Suite
from .conversations import Spoken, load
from .everything import KeepsEverything
from .figures import METRICS, Tally, tally
from .remembering import remember

OFFLINE, EVERYTHING = "offline", "every message"


def build(directory: Path, quick: bool) -> Suite:  # noqa: ARG001  # nothing is stored
    """The suite; with `quick`, of the first conversation only."""
    path = os.environ.get("RECOLLECT_LOCOMO")
    conversations = load(Path(path))[: 1 if quick else None] if path else []
    measures = [_measure(each.name, [each]) for each in conversations]
    if len(conversations) > 1:
        measures.append(_measure("overall", conversations))
    return Suite("quality", OFFLINE, (OFFLINE, EVERYTHING), (EVERYTHING,), measures)


def _measure(name: str, conversations: Sequence[Spoken]) -> Measure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {
            OFFLINE: _sampler(OfflineExtractor(), conversations),
            EVERYTHING: _sampler(KeepsEverything(), conversations),
        }

    what = f"both speakers of {name}, each as a user" if len(conversations) == 1 else "all conversations"
    return Measure(name, what, METRICS, 1, open_all, (EVERYTHING,), warm_up=False)


def _sampler(extractor: Extractor, conversations: Sequence[Spoken]) -> Sampler:
    async def sample() -> Sample:
        total = Tally.nothing()
        for spoken in conversations:
            memories = [await remember(extractor, spoken, speaker) for speaker in spoken.speakers]
            total += tally(spoken, memories)
        return total.sample()

    return sample
