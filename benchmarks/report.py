"""Results as tables for people and as JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .harness import Metric, Result, Suite, Summary

Row = Sequence[str]
NOTHING = "-"


def format_block(result: Result) -> str:
    """One measure in full: every contender and metric, with spread and ratios."""
    measure = result.measure
    heads = ["contender", "metric", "median", "quartiles", *(f"x {name}" for name in measure.baselines)]
    rows = [
        _block_row(result, metric, contender, summary)
        for metric in measure.metrics
        for contender, summary in result.summaries[metric.name].items()
    ]
    return f"### {measure.name}: {measure.what} ({measure.repeats} repeats)\n{_table([heads, *rows])}\n"


def _block_row(result: Result, metric: Metric, contender: str, summary: Summary) -> Row:
    low, high = summary.quartiles
    ratios = (result.ratio(metric, contender, baseline) for baseline in result.measure.baselines)
    return [
        contender,
        _title(metric),
        format_value(summary.median, metric.unit),
        f"{format_value(low, metric.unit)} .. {format_value(high, metric.unit)}",
        *map(_format_ratio, ratios),
    ]


def format_overview(suite: Suite, results: Sequence[Result]) -> str:
    """A line for each measure: the medians of the main contenders, and ours against the baselines."""
    heads = ["measure", *suite.columns, *(f"x {name}" for name in suite.baselines)]
    rows = [_overview_row(suite, result, metric) for result in results for metric in result.measure.metrics]
    title = f"{suite.name}: medians, and {suite.subject} as a multiple of {' and of '.join(suite.baselines)}"
    return f"## {title}\n{_table([heads, *rows])}\n"


def _overview_row(suite: Suite, result: Result, metric: Metric) -> Row:
    of_metric = result.summaries[metric.name]
    medians = (
        format_value(of_metric[name].median, metric.unit) if name in of_metric else NOTHING
        for name in suite.columns
    )
    ratios = (result.ratio(metric, suite.subject, baseline) for baseline in suite.baselines)
    return [f"{result.measure.name}, {_title(metric)}", *medians, *map(_format_ratio, ratios)]


def _title(metric: Metric) -> str:
    return f"{metric.name} (more is better)" if metric.more_is_better else metric.name


def format_value(value: float, unit: str) -> str:
    """A number with three digits that count, and for times the unit that suits it."""
    if unit == "s":
        for scale, name in ((1, "s"), (1e3, "ms")):
            if abs(value) * scale >= 1:
                return f"{_three_digits(value * scale)} {name}"
        return f"{_three_digits(value * 1e6)} µs"
    return f"{_three_digits(value)} {unit}".rstrip()


def _three_digits(value: float) -> str:
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _format_ratio(ratio: float | None) -> str:
    return NOTHING if ratio is None else f"{ratio:.2f}x"


def _table(rows: Sequence[Row]) -> str:
    """Rows as an aligned Markdown table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(_cells(row, widths)) + " |" for row in rows]
    rule = "|-" + "-|-".join("-" * width for width in widths) + "-|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _cells(row: Row, widths: Sequence[int]) -> Iterable[str]:
    yield row[0].ljust(widths[0])
    yield from (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))


def write_json(path: Path, environment: dict[str, Any], results: dict[str, list[Result]]) -> None:
    """Everything that was measured, each single value included."""
    suites = {suite: [_result_as_dict(result) for result in of_suite] for suite, of_suite in results.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"environment": environment, "suites": suites}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _result_as_dict(result: Result) -> dict[str, Any]:
    measure = result.measure
    metrics = [{**asdict(metric), "contenders": _contenders(result, metric)} for metric in measure.metrics]
    return {"name": measure.name, "what": measure.what, "repeats": measure.repeats, "metrics": metrics}


def _contenders(result: Result, metric: Metric) -> dict[str, Any]:
    return {
        contender: {
            "median": summary.median,
            "quartiles": summary.quartiles,
            "ratios": {base: result.ratio(metric, contender, base) for base in result.measure.baselines},
            "values": summary.values,
        }
        for contender, summary in result.summaries[metric.name].items()
    }
