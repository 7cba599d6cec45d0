"""`recollect bench`: measure search. The measurements are in `benchmarks/`, outside the wheel."""

import argparse
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import RecollectError
from .arguments import Commands, Run, add_command, chance, count

_SOURCES = Path(__file__).resolve().parents[3]  # of a source checkout: src/recollect/cli/bench.py
_NOT_INSTALLED = (
    "the benchmarks are not part of the installed package. Run this command from a source checkout: clone the"
    " repository, run `make install`, then `.venv/bin/recollect bench`"
)


def add_bench_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    bench = add_command(
        commands,
        "bench",
        "measure search quality and vector search speed (needs a source checkout)",
        "  recollect bench recall chats.json\n  recollect bench vectors --sizes 10k\n",
    )
    collections = bench.add_subparsers(title="collections", metavar="COLLECTION", required=True)
    _add_recall(collections)
    _add_vectors(collections)


def _add_recall(collections: Commands) -> None:
    recall = add_command(
        collections,
        "recall",
        "measure how well search finds the messages that answer questions, and what recall gives an agent",
        "  recollect bench recall chats.json projects.json\n"
        "  recollect bench recall chats.json --learned --json\n",
        _run_from("recall"),
    )
    recall.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a collection: conversations and questions, as JSON",
    )
    recall.add_argument("--learned", action="store_true", help="search the entries learned from the messages")
    recall.add_argument(
        "--budget", type=count, default=500, metavar="N", help="tokens of the block of recall (default: 500)"
    )
    recall.add_argument("--no-names", action="store_true", help="record the messages without names")
    recall.add_argument("--sessions", action="store_true", help="also measure how well sessions are found")
    recall.add_argument("--limit-samples", type=count, metavar="N", help="use only the first N samples")
    recall.add_argument("--questions", type=count, metavar="N", help="ask at most N questions per sample")
    recall.add_argument(
        "--min-relevance",
        type=chance,
        metavar="CHANCE",
        help="no hits below this chance of an answer (default: that of recall)",
    )
    recall.add_argument(
        "--embedder", choices=["local", "none"], default="local", help="`none` searches by words only"
    )
    recall.add_argument(
        "--database", metavar="URL", help="record there, as a tenant of its own (default: a temporary file)"
    )
    recall.add_argument("--json", action="store_true", help="print the figures as JSON")


def _add_vectors(collections: Commands) -> None:
    vectors = add_command(
        collections,
        "vectors",
        "measure nearest-neighbour search in SQLite and PostgreSQL",
        "  recollect bench vectors --sizes 10k,100k\n  recollect bench vectors --sizes 1M --json\n",
        _run_from("vectors"),
    )
    vectors.add_argument("--sizes", default="10k,100k", help="such as 10k,100k,1M (1M needs several GB)")
    vectors.add_argument("--dimensions", type=int, default=512, help="of each vector (default: 512)")
    vectors.add_argument("--users", type=int, help="number of users (default: one per 1,000 vectors)")
    vectors.add_argument(
        "--postgres", metavar="URL", help="a server where a database may be created (default: start one)"
    )
    vectors.add_argument("--json", action="store_true", help="print the figures as JSON")


def _run_from(name: str) -> Run:
    """Run a measurement, which is imported only when it is needed."""

    def run(options: argparse.Namespace) -> int:
        return int(_load(name).run(options))

    return run


def _load(name: str) -> Any:
    if find_spec("benchmarks") is None and (_SOURCES / "benchmarks" / "search").is_dir():
        sys.path.append(str(_SOURCES))
    try:
        return import_module(f"benchmarks.search.{name}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("benchmarks"):
            raise
        raise RecollectError(_NOT_INSTALLED) from error
