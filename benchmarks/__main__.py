"""`python -m benchmarks [suite ...]`: run suites, print tables, write JSON."""

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from .environment import describe_environment, file_system_of
from .harness import Measure, Result, Suite, run_measure
from .report import format_block, format_overview, write_json

# Each module has `build(directory, quick) -> Suite`. Imported when chosen: a suite may need its own drivers.
SUITES = {
    "sessions": "benchmarks.sessions.suite",
    "advanced": "benchmarks.advanced.suite",
    "encryption": "benchmarks.encryption.suite",
    "strategies": "benchmarks.strategies.suite",
    "quality": "benchmarks.quality.suite",
    "learning": "benchmarks.learning.suite",
    "redis": "benchmarks.redis.suite",
    "postgres": "benchmarks.postgres.suite",
    "memory": "benchmarks.memory.suite",
    "search": "benchmarks.search.suite",
    "langgraph": "benchmarks.langgraph.suite",
    "moving": "benchmarks.moving.suite",
    "service": "benchmarks.service.suite",
    "scale": "benchmarks.scale.suite",
    "start": "benchmarks.start.suite",
    "proxy": "benchmarks.proxy.suite",
}
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    options = _parse(arguments)
    names = options.suites or list(SUITES)
    with tempfile.TemporaryDirectory(prefix="recollect-benchmarks-") as folder:
        directory = Path(folder).resolve()
        suites = [_chosen(_build(name, directory, options.quick), options.only) for name in names]
        if options.list:
            return _list(suites)
        if not any(suite.measures for suite in suites):
            print(f"no measure matches {' or '.join(options.only)}; see --list", file=sys.stderr)
            return 2
        _warn_of_memory_disk(directory)
        environment = {**describe_environment(directory), "quick": options.quick}
        results = {suite.name: _run(suite) for suite in suites}
    path = options.json or RESULTS / f"{'-'.join(names)}.json"
    write_json(path, environment, results)
    print(f"written to {path}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="suite", help=f"of {', '.join(SUITES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats: see that it works")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="a measure, or a pattern as in 'add-*'"
    )
    parser.add_argument("--list", action="store_true", help="list the measures and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="default: benchmarks/results/<suite>.json")
    options = parser.parse_args(arguments)
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    return options


def _build(name: str, directory: Path, quick: bool) -> Suite:
    own = directory / name
    own.mkdir()
    suite: Suite = importlib.import_module(SUITES[name]).build(own, quick)
    return suite


def _chosen(suite: Suite, patterns: Sequence[str] | None) -> Suite:
    """The suite with only the measures that match a pattern, if there are any patterns."""
    if not patterns:
        return suite
    return replace(suite, measures=[measure for measure in suite.measures if _matches(measure, patterns)])


def _matches(measure: Measure, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(measure.name, pattern) for pattern in patterns)


def _list(suites: Sequence[Suite]) -> int:
    for suite in suites:
        for measure in suite.measures:
            print(f"{suite.name}  {measure.name:24} {measure.what}")
    return 0


def _run(suite: Suite) -> list[Result]:
    results = []
    started = time.monotonic()
    for measure in suite.measures:
        results.append(run_measure(measure))
        print(format_block(results[-1]), flush=True)
    print(format_overview(suite, results))
    print(f"{suite.name}: {time.monotonic() - started:.0f} s")
    return results


def _warn_of_memory_disk(directory: Path) -> None:
    if file_system_of(directory) in ("tmpfs", "ramfs"):
        print("The files lie in memory, where flushing costs nothing: set TMPDIR to a real disk.\n")


if __name__ == "__main__":
    sys.exit(main())
