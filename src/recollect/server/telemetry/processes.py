"""The metrics of a service of several processes: each series of a process gets the label `process`.

A scrape reaches any one of the processes. It answers for all of them, so counters never jump between scrapes.
Metrics that are the same in every process appear once, without the label.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from .metrics import Metrics

Snapshot: TypeAlias = Sequence[Sequence[Any]]
"""The metrics of a process as JSON: `[name, help, type, [[sample, labels, value], ...]]` for each."""

LABEL = "process"


class Siblings(Protocol):
    """Exchanges metrics with the other processes of the service."""

    async def exchange(self, own: Snapshot) -> Mapping[str, Snapshot]:
        """Publish this process's metrics, and return the latest of all processes by the label's value."""
        ...


async def render_metrics(metrics: Metrics, siblings: Siblings | None) -> bytes:
    """The metrics of all processes of a service in Prometheus's text format."""
    if siblings is None:
        return metrics.render()
    everyone = await siblings.exchange(snapshot(metrics))
    return await asyncio.to_thread(_render, metrics, everyone)


def snapshot(metrics: Metrics) -> Snapshot:
    """The metrics of this process."""
    return [
        [
            metric.name,
            metric.documentation,
            metric.type,
            [[s.name, s.labels, s.value] for s in metric.samples],
        ]
        for metric in metrics.registry.collect()
    ]


def _render(metrics: Metrics, everyone: Mapping[str, Snapshot]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Merged(everyone))
    return generate_latest(registry) + generate_latest(metrics.shared)


class _Merged(Collector):
    """The metrics of several processes, each family once."""

    def __init__(self, everyone: Mapping[str, Snapshot]) -> None:
        self._everyone = everyone

    def collect(self) -> list[Metric]:
        families: dict[str, Metric] = {}
        for process, metrics in self._everyone.items():
            for name, help_text, kind, samples in metrics:
                family = families.setdefault(name, Metric(name, help_text, kind))
                for sample, labels, value in samples:
                    family.add_sample(sample, {**labels, LABEL: process}, value)
        return list(families.values())
