"""Measuring contenders in turns, so that a noisy machine is noisy for all of them alike.

A measure opens its contenders and gives a sampler for each. The harness calls the samplers round-robin, one
sample each per repeat and in a rotating order, and keeps medians and quartiles. What a sampler measures,
and in what process, is its own affair: a sample is a number for each metric.
"""

import asyncio
import gc
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

Sample: TypeAlias = Mapping[str, float]
Sampler: TypeAlias = Callable[[], Awaitable[Sample]]
OpenMeasure: TypeAlias = Callable[[], AbstractAsyncContextManager[Mapping[str, Sampler]]]


@dataclass(frozen=True)
class Metric:
    """One number of a sample. Times are in seconds; the report chooses a readable unit."""

    name: str
    unit: str = "s"
    more_is_better: bool = False
    has_ratio: bool = True


@dataclass(frozen=True)
class Overhead(Metric):
    """How much the metric `of` is above that of the contender `over`, within the same repeat."""

    of: str = ""
    over: str = ""


@dataclass(frozen=True)
class Measure:
    """Something to be measured for several contenders."""

    name: str
    what: str
    metrics: tuple[Metric, ...]
    repeats: int
    open: OpenMeasure
    baselines: tuple[str, ...]  # contenders that the others are compared with
    warm_up: bool = True  # take one sample of each that does not count
    collect: bool = False  # collect garbage before each sample, so that nobody pays for the one before
    pause: float = 0.0  # seconds of rest before each repeat


@dataclass(frozen=True)
class Suite:
    """The measures of one part of the product."""

    name: str
    subject: str  # the contender that is ours
    columns: tuple[str, ...]  # the contenders shown in the overview
    baselines: tuple[str, ...]
    measures: Sequence[Measure]


@dataclass(frozen=True)
class Summary:
    """All values of one metric for one contender."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Between these lies the middle half of the values: their distance is the spread."""
        if len(self.values) < 2:
            return self.values[0], self.values[0]
        first, _, third = statistics.quantiles(self.values, n=4, method="inclusive")
        return first, third


@dataclass(frozen=True)
class Result:
    """What a measure found: a summary for each metric and contender."""

    measure: Measure
    summaries: Mapping[str, Mapping[str, Summary]]

    def ratio(self, metric: Metric, contender: str, baseline: str) -> float | None:
        """A contender's median as a multiple of the baseline's; `None` where that says nothing."""
        of_metric = self.summaries[metric.name]
        if not metric.has_ratio or contender not in of_metric or baseline not in of_metric:
            return None
        divisor = of_metric[baseline].median
        return of_metric[contender].median / divisor if divisor > 0 else None


def run_measure(measure: Measure) -> Result:
    """Measure every contender, in an event loop of its own so that no measure inherits another's threads."""
    return Result(measure, _summarise(measure, asyncio.run(_sample_in_turns(measure))))


async def _sample_in_turns(measure: Measure) -> dict[str, list[Sample]]:
    async with measure.open() as samplers:
        taken: dict[str, list[Sample]] = {name: [] for name in samplers}
        for repeat in range(-1 if measure.warm_up else 0, measure.repeats):
            await asyncio.sleep(measure.pause)
            for name in _rotated(list(samplers), repeat):
                if measure.collect:
                    gc.collect()
                sample = await samplers[name]()
                if repeat >= 0:
                    taken[name].append(sample)
        return taken


def _rotated(names: list[str], by: int) -> list[str]:
    """The names starting with another one each time: who comes first or after whom must not matter."""
    start = by % len(names)
    return names[start:] + names[:start]


def _summarise(measure: Measure, taken: Mapping[str, list[Sample]]) -> dict[str, dict[str, Summary]]:
    return {
        metric.name: {name: Summary(_values_of(metric, name, taken)) for name in taken}
        for metric in measure.metrics
    }


def _values_of(metric: Metric, contender: str, taken: Mapping[str, list[Sample]]) -> tuple[float, ...]:
    if not isinstance(metric, Overhead):
        return tuple(sample[metric.name] for sample in taken[contender])
    pairs = zip(taken[contender], taken[metric.over], strict=True)
    return tuple(sample[metric.of] - base[metric.of] for sample, base in pairs)


async def timed(operation: Callable[[], Awaitable[object]], times: int = 1) -> float:
    """The seconds that one call takes, as the mean of a few in a row.

    The mean, because a write-ahead log makes some calls pay for others. The last result is let go only
    after the clock has stopped: for a single large read, freeing it is not part of the read.
    """
    started = perf_counter()
    for _ in range(times):
        result = await operation()
    seconds = (perf_counter() - started) / times
    del result
    return seconds
