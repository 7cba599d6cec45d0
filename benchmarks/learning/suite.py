"""The quality of learning, on the half for tuning and on the half that is kept back.

Of conversations, the facts that are found; of users, the state at the end: what holds, what must not stand,
how the entries read, and what `recall` answers.

`RECOLLECT_EXTRACTOR` names another extractor to measure, as `module:factory`; the factory takes no arguments.
"""

import importlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Extractor

from ..harness import Measure, Sample, Sampler, Suite
from ..quality.everything import KeepsEverything
from .figures import METRICS, Tally, tally
from .labels import HALVES, Half, Labelled, load
from .learning import learn
from .state_figures import METRICS as STATE_METRICS
from .state_figures import measure_states
from .states import DATA as USERS
from .states import User, load_users

OFFLINE, EVERYTHING = "offline", "every message"
_QUICK = 4  # conversations of each half


def build(directory: Path, quick: bool) -> Suite:  # noqa: ARG001  # nothing is stored
    """The suite; with `quick`, of a few conversations only."""
    makers = _extractors()
    most = _QUICK if quick else None
    measures = [_measure(half, of_half(half)[:most], makers) for half in HALVES]
    measures += [_measure_users(half, users_of(half)[:most], makers) for half in HALVES]
    return Suite("learning", next(iter(makers)), tuple(makers), (EVERYTHING,), measures)


def of_half(half: Half) -> list[Labelled]:
    """The labelled conversations of a half."""
    return [labelled for labelled in load() if labelled.half == half]


async def measure(extractor: Extractor, conversations: Sequence[Labelled]) -> Tally:
    """The figures of an extractor on conversations."""
    total = Tally()
    for labelled in conversations:
        total += tally(labelled, await learn(extractor, labelled))
    return total


def users_of(half: Half) -> list[User]:
    """The labelled users of a half."""
    return load_users(USERS / f"{half}.txt")


def _extractors() -> dict[str, Callable[[], Extractor]]:
    makers: dict[str, Callable[[], Extractor]] = {OFFLINE: OfflineExtractor, EVERYTHING: KeepsEverything}
    if named := os.environ.get("RECOLLECT_EXTRACTOR"):
        module, _, factory = named.partition(":")
        makers = {named: getattr(importlib.import_module(module), factory), **makers}
    return makers


def _measure(
    half: Half, conversations: Sequence[Labelled], makers: Mapping[str, Callable[[], Extractor]]
) -> Measure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {name: _sampler(make(), conversations) for name, make in makers.items()}

    what = f"the {len(conversations)} labelled conversations of the half to {half}"
    return Measure(half, what, METRICS, 1, open_all, (EVERYTHING,), warm_up=False)


def _sampler(extractor: Extractor, conversations: Sequence[Labelled]) -> Sampler:
    async def sample() -> Sample:
        return (await measure(extractor, conversations)).sample()

    return sample


def _measure_users(
    half: Half, users: Sequence[User], makers: Mapping[str, Callable[[], Extractor]]
) -> Measure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {name: _state_sampler(make(), users) for name, make in makers.items() if name != EVERYTHING}

    what = f"the state of the {len(users)} labelled users of the half to {half}"
    return Measure(f"users-{half}", what, STATE_METRICS, 1, open_all, (), warm_up=False)


def _state_sampler(extractor: Extractor, users: Sequence[User]) -> Sampler:
    async def sample() -> Sample:
        return (await measure_states(extractor, users)).sample()

    return sample
