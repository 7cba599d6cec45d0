"""`recollect bench locomo`: how well search ranks the turns that answer a question (LoCoMo)."""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from recollect.cli.output import progress
from recollect.errors import ImportFormatError

if TYPE_CHECKING:
    from recollect.memory.search import Corpus, Weights
    from recollect.memory.search.embedders import Embedder

    from .evaluation import Found, Question, Sample

_LONGEST_LIST = 50


def run(options: argparse.Namespace) -> int:
    """Measure on LoCoMo, and print the figures."""
    from recollect.memory.search import Weights
    from recollect.memory.search.ranking import PARTS

    from .evaluation import figures, figures_by_category, read_locomo

    samples = read_locomo(_read_json(options.data))
    corpora = asyncio.run(_prepare(samples, _embedder(options.embedder)))
    found = _ask_all(corpora, Weights())
    if not found:
        raise ImportFormatError(f"{options.data} has no questions with evidence")
    report: dict[str, Any] = {"questions": len(found), "embedder": options.embedder}
    report |= {"all": figures(found), "categories": figures_by_category(found)}
    if options.ablate:
        report["without"] = {part: figures(_ask_all(corpora, Weights().without(part))) for part in PARTS}
    print(json.dumps(report, indent=2) if options.json else _table(report))
    return 0


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ImportFormatError(f"{path} is not JSON") from error


def _embedder(name: str) -> "Embedder | None":
    from recollect.memory.search.embedders import LocalEmbedder

    return LocalEmbedder() if name == "local" else None


class _Prepared:
    """A searchable conversation, and its questions with their vectors."""

    def __init__(self, corpus: "Corpus", sample: "Sample") -> None:
        self.corpus, self.sample = corpus, sample
        self.vectors: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}


async def _prepare(samples: Sequence["Sample"], embedder: "Embedder | None") -> list[_Prepared]:
    prepared: list[_Prepared] = []
    with progress("preparing conversations") as shown:
        for sample in samples:
            shown.reach(len(prepared), len(samples))
            prepared.append(await _prepare_one(sample, embedder))
    return prepared


async def _prepare_one(sample: "Sample", embedder: "Embedder | None") -> _Prepared:
    from recollect.memory.search import Corpus

    turns = sample.turns
    if embedder is not None:
        vectors = await embedder.embed([_embeddable(turn.text, sample) for turn in turns])
        turns = tuple(replace(turn, vector=vector) for turn, vector in zip(turns, vectors, strict=True))
    made = _Prepared(Corpus(turns), sample)
    if embedder is not None:
        await _embed_questions(made, embedder)
    return made


def _embeddable(text: str, sample: "Sample") -> str:
    from recollect.memory.search import without_names

    return without_names(text, sample.speakers)


async def _embed_questions(prepared: _Prepared, embedder: "Embedder") -> None:
    """Embed the questions one by one, as in production. The time counts for each question."""
    from recollect.memory.search import understand

    for question in prepared.sample.questions:
        query = understand(question.text, prepared.corpus.speakers)
        started = perf_counter()
        prepared.vectors[question.text] = (await embedder.embed([query.embedding_text]))[0]
        prepared.seconds[question.text] = perf_counter() - started


def _ask_all(prepared: Sequence[_Prepared], weights: "Weights") -> list["Found"]:
    asked = [(each, question) for each in prepared for question in each.sample.questions]
    found = []
    with progress("asking questions") as shown:
        for each, question in asked:
            found.append(_ask(each, question, weights))
            shown.reach(len(found), len(asked))
    return found


def _ask(prepared: _Prepared, question: "Question", weights: "Weights") -> "Found":
    from recollect.memory.search import rank, rank_sessions, understand

    from .evaluation import Found

    vector = prepared.vectors.get(question.text)
    started = perf_counter()
    query = understand(question.text, prepared.corpus.speakers)
    turns = rank(query, prepared.corpus, vector, weights=weights, limit=_LONGEST_LIST)
    seconds = perf_counter() - started + prepared.seconds.get(question.text, 0.0)
    sessions = rank_sessions(query, prepared.corpus, vector, weights=weights)
    return Found(question, [hit.id for hit in turns], [hit.session for hit in sessions], seconds)


def _table(report: dict[str, Any]) -> str:
    rows = {"all": report["all"], **report["categories"]}
    rows |= {f"without {part}": its for part, its in report.get("without", {}).items()}
    names = list(report["all"])
    width = max(map(len, rows))
    head = " ".join(f"{_short(name):>8}" for name in names)
    lines = [f"{report['questions']} questions, embedder: {report['embedder']}", f"{'':{width}} {head}"]
    for row, its in rows.items():
        lines.append(f"{row:{width}} " + " ".join(f"{its[name]:8.3f}" for name in names))
    return "\n".join(lines)


def _short(name: str) -> str:
    """Shorten a name to fit its column: R, N and H at a cut, t for turns and s for sessions."""
    for long, short in (("turn_", "t"), ("session_", "s"), ("recall", "R"), ("ndcg", "N"), ("hit", "H")):
        name = name.replace(long, short)
    return name.replace("milliseconds", "ms")
