"""`recollect bench recall`: how well search finds the messages that answer a question, and what agents get.

The block of `recall` is built with the entries that were learned from the sample.
"""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from recollect.cli.output import progress, table

from .asking import (
    Recorded,
    Way,
    ask,
    ask_for_block,
    ask_in_vain,
    choose_cut,
    open_store,
    recorded,
    warm_up,
)
from .collections import Question, Sample, read_collection
from .evaluation import (
    Answered,
    Figures,
    Shown,
    Unanswerable,
    figures,
    figures_by_kind,
    figures_of_blocks,
    figures_of_cut,
    reliability,
)
from .first_minute import UNRELATED

Foreign: TypeAlias = Sequence[tuple[Question, ...]]


@dataclass
class Outcome:
    """What was measured on a collection."""

    answered: list[Answered] = field(default_factory=list)
    unanswerable: list[Unanswerable] = field(default_factory=list)
    answerable: list[Shown] = field(default_factory=list)
    """The blocks of questions with an answer."""
    foreign: list[Shown] = field(default_factory=list)
    """The blocks of questions that belong to another sample."""
    unrelated: list[Shown] = field(default_factory=list)
    """The blocks of questions that nobody told anything about."""
    first_seconds: list[float] = field(default_factory=list)
    """The time of the first search of each sample, which reads the sample from the database."""


def run(options: argparse.Namespace) -> int:
    """Measure each collection, and print the figures."""
    collections = {path: _choose(read_collection(path), options) for path in options.files}
    way = Way(options.learned, options.sessions, choose_cut(options.min_relevance))
    reports = {
        _name(path): _report(asyncio.run(_measure(its, way, options))) for path, its in collections.items()
    }
    told = {"searched": "entries" if way.learned else "messages", "embedder": options.embedder}
    told |= {"names": not options.no_names, "min_relevance": way.min_relevance, "budget": options.budget}
    told |= {"collections": reports}
    print(json.dumps(told, indent=2) if options.json else _text(told))
    return 0


def _choose(samples: Sequence[Sample], options: argparse.Namespace) -> list[Sample]:
    chosen = [sample.with_questions(options.questions) for sample in samples[: options.limit_samples]]
    return [sample.without_names() for sample in chosen] if options.no_names else chosen


def _name(path: Path) -> str:
    return path.name.removesuffix(".json")


def share_out(samples: Sequence[Sample]) -> Foreign:
    """The questions to ask each sample that belong to the others: every question goes to one other sample.

    Each sample's questions are dealt to the others in turn, so all samples get about the same number.
    """
    count = len(samples)
    dealt: list[list[Question]] = [[] for _ in samples]
    if count > 1:
        for number, sample in enumerate(samples):
            for place, question in enumerate(sample.questions):
                dealt[(number + 1 + place % (count - 1)) % count].append(question)
    return [tuple(each) for each in dealt]


async def _measure(samples: Sequence[Sample], way: Way, options: argparse.Namespace) -> Outcome:
    outcome = Outcome()
    async with open_store(options.database, options.embedder, True) as store:
        with progress("asking questions") as shown:
            for number, (sample, foreign) in enumerate(zip(samples, share_out(samples), strict=True)):
                shown.reach(number, len(samples))
                async with recorded(store, sample, number, True) as made:
                    await _ask_all(made, foreign, way, outcome)
                    await _ask_for_blocks(made, foreign, options.budget, outcome)
    return outcome


async def _ask_all(made: Recorded, foreign: Sequence[Question], way: Way, outcome: Outcome) -> None:
    if made.sample.questions:
        outcome.first_seconds.append(await warm_up(made, way))
    for question in made.sample.questions:
        outcome.answered.append(await ask(made, question, way))
    for question in foreign:
        outcome.unanswerable.append(await ask_in_vain(made, question, way))


async def _ask_for_blocks(made: Recorded, foreign: Sequence[Question], budget: int, outcome: Outcome) -> None:
    for question in made.sample.questions:
        outcome.answerable.append(await ask_for_block(made, question.text, budget, question))
    for question in foreign:
        outcome.foreign.append(await ask_for_block(made, question.text, budget))
    for text in UNRELATED:
        outcome.unrelated.append(await ask_for_block(made, text, budget))


def _report(outcome: Outcome) -> dict[str, Any]:
    first = outcome.first_seconds
    return {
        "questions": len(outcome.answered),
        "all": figures(outcome.answered),
        "kinds": figures_by_kind(outcome.answered),
        "questions_by_kind": _count_kinds(outcome.answered),
        "first_search_ms": 1000 * sum(first) / len(first),
        "without_answer": figures_of_cut(outcome.answered, outcome.unanswerable),
        "block": figures_of_blocks(outcome.answerable, outcome.foreign, outcome.unrelated),
        "reliability": reliability(outcome.answered, outcome.unanswerable),
    }


def _count_kinds(answered: Sequence[Answered]) -> dict[str, int]:
    return {kind: len(list(its)) for kind, its in groupby(sorted(each.kind for each in answered))}


# --- text ---


def _text(told: Mapping[str, Any]) -> str:
    names = "with names" if told["names"] else "without names"
    head = f"Search of {told['searched']}, {names}, embedder {told['embedder']}"
    reports = told["collections"]
    return "\n\n".join([head, _blocks(told), _quality(reports), _cuts(told), _reliability(reports)])


def _blocks(told: Mapping[str, Any]) -> str:
    columns = [
        "evidence",
        "tokens",
        "empty",
        "foreign_silent",
        "unrelated_silent",
        "newest_first",
        "outdated",
    ]
    rows = [(name, *_cells(report["block"], columns)) for name, report in told["collections"].items()]
    title = f"What the block of recall shows, at {told['budget']} tokens"
    return f"{title}\n{table(('collection', *(label.replace('_', ' ') for label in columns)), rows)}"


def _reliability(reports: Mapping[str, Mapping[str, Any]]) -> str:
    columns = ("hits", "stated", "relevant")
    rows = [
        (name, f"{row['from']:g} to {row['to']:g}", *_cells(row, columns))
        for name, report in reports.items()
        for row in report["reliability"]
    ]
    title = "The chance of a hit as stated, and the share that is relevant"
    return f"{title}\n{table(('collection', 'chance', *columns), rows)}"


def _quality(reports: Mapping[str, Mapping[str, Any]]) -> str:
    names = list(next(iter(reports.values()))["all"])
    rows: list[Sequence[object]] = []
    for collection, report in reports.items():
        rows.append((collection, "all", report["questions"], *_cells(report["all"], names)))
        for kind, its in report["kinds"].items() if len(report["kinds"]) > 1 else ():
            rows.append((collection, kind, report["questions_by_kind"][kind], *_cells(its, names)))
    return table(("collection", "kind", "questions", *map(_short, names)), rows)


def _cuts(told: Mapping[str, Any]) -> str:
    cut = told["min_relevance"]
    title = "Questions without an answer" + ("" if cut is None else f", and what min_relevance {cut:g} keeps")
    columns = ["unanswerable", "nothing"]
    if cut is not None:
        columns += ["nothing_above_cut", "recall@10", "recall@10_above_cut", "recall_kept"]
    rows = [
        (name, *_cells(report["without_answer"], columns), f"{report['first_search_ms']:.1f}")
        for name, report in told["collections"].items()
    ]
    labels = [label.replace("_", " ") for label in columns]
    return f"{title}\n{table(('collection', *labels, 'first search ms'), rows)}"


def _cells(its: Figures, names: Sequence[str]) -> list[str]:
    return [_cell(name, its.get(name)) for name in names]


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in ("unanswerable", "tokens", "hits"):
        return f"{value:.0f}"
    return f"{value:.1f}" if name.endswith("_ms") else f"{value:.3f}"


def _short(name: str) -> str:
    """Shorten a name to fit its column: R, N and H at a cut, with s for sessions."""
    for long, short in (("session_", "s"), ("recall", "R"), ("ndcg", "N"), ("hit", "H")):
        name = name.replace(long, short)
    return name.replace("_ms", " ms")
