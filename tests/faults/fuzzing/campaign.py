"""The long form: each target gets its share of the inputs, made by a fuzzer that looks where the code goes.

A target is tried in a process of its own, as many at once as there are cores. An input that does not hold,
that takes too long or that ends the process is kept in the corpus, where a test tries it from then on.
"""

import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.processes import ending_with_us

from ..account import Account, Plan
from .making import CORPUS
from .target import Target
from .targets import TARGETS
from .targets.questions import POSTGRES

_ALL = sum(target.inputs for target in TARGETS.values())
_LEAST = 20  # inputs: every target gets some
_MOST_FOUND = 3  # of one target: then its code is to be looked at, and not tried on
_LONGEST = 60  # seconds that an input may take, on a machine that may be busy
_EXECUTED = re.compile(rb"(?:stat::number_of_executed_units|inputs):\s*(\d+)")
_RAISED = re.compile(rb"raised: (.*)")
_FOUND = ("crash-*", "timeout-*", "oom-*")


def run(plan: Plan) -> Iterator[Account]:
    """Try every target, or the one that is asked for."""
    return _try_all([TARGETS[name] for name in plan.chosen(TARGETS)], plan)


def _try_all(chosen: list[Target], plan: Plan) -> Iterator[Account]:
    with _folder() as folder, _postgres(chosen) as environment:
        # A process that a fuzzer ends clears nothing up: what it made goes with the folder.
        campaign = _Campaign(plan, folder, {**environment, "TMPDIR": str(folder)})
        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            yield from threads.map(campaign.try_target, chosen)


@contextmanager
def _folder() -> Iterator[Path]:
    """Where files are quickest: what becomes of them does not matter."""
    disk = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with TemporaryDirectory(prefix="recollect-fuzzing-", dir=disk, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def _postgres(chosen: list[Target]) -> Iterator[dict[str, str]]:
    if not any(target.needs_postgres for target in chosen):
        yield dict(os.environ)
        return
    with PostgresServer() as server:
        yield {**os.environ, POSTGRES: server.url}


@dataclass(frozen=True)
class _Done:
    """What a process did: how many inputs, and what it ended with."""

    inputs: int
    found: list[Path]
    output: bytes
    failed: bool


@dataclass(frozen=True)
class _Campaign:
    plan: Plan
    folder: Path
    environment: dict[str, str]

    def try_target(self, target: Target) -> Account:
        """Give a target its share; after an input that does not hold, go on without it, with another seed."""
        account = Account("fuzzing", target.name)
        began = time.monotonic()
        left = share_of(target, self.plan.operations)
        corpus = self.folder / target.name
        shutil.copytree(CORPUS / target.name, corpus)
        for attempt in range(_MOST_FOUND):
            seed = (self.plan.seed + attempt) % 2**31 + 1  # of libFuzzer, to whom 0 means any
            done = self._fuzz(target, left, seed)
            account.seeds.append(seed)
            account.operations["inputs"] += done.inputs
            account.findings += _findings(target, done, self.plan)
            leave_out(corpus, [path.read_bytes() for path in done.found], target.longest)
            left -= done.inputs
            if left <= 0 or not done.failed:
                break
        account.seconds = time.monotonic() - began
        account.measures["inputs a second"] = round(account.operations.total() / account.seconds)
        return account

    def _fuzz(self, target: Target, runs: int, seed: int) -> _Done:
        corpus, found = self.folder / target.name, self.folder / f"{target.name}-{seed}"
        found.mkdir()
        options = {
            "runs": runs,
            "seed": seed,
            "max_len": target.longest,
            "timeout": _LONGEST,
            "rss_limit_mb": 4096,
            "detect_leaks": 0,
            "print_final_stats": 1,
            "artifact_prefix": f"{found}/",
        }
        command = [sys.executable, "-m", "tests.faults.fuzzing", target.name]
        command += [f"-{name}={value}" for name, value in options.items()]
        ended = subprocess.run(
            [*ending_with_us(), *command, str(corpus)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        counted = _EXECUTED.search(ended.stdout)
        count = int(counted[1]) if counted else 0
        kept = [path for kind in _FOUND for path in sorted(found.glob(kind))]
        return _Done(count, kept, ended.stdout, ended.returncode != 0)


def share_of(target: Target, inputs: int) -> int:
    """How many of all inputs a target gets."""
    return max(_LEAST, math.ceil(inputs * target.inputs / _ALL))


def leave_out(corpus: Path, found: Collection[bytes], longest: int) -> None:
    """Take inputs out of a corpus, however much of them the fuzzer left away."""
    for path in corpus.iterdir():
        if path.read_bytes()[:longest] in found:
            path.unlink()


def _findings(target: Target, done: _Done, plan: Plan) -> list[str]:
    """What did not hold, in words; the inputs are kept in the corpus."""
    raised = _RAISED.search(done.output)
    why = raised[1].decode("utf-8", "replace")[:200] if raised else ""
    found = [
        f"{target.name}: {path.name.partition('-')[0]} {why} (--seed {plan.seed}):"
        f" python -m tests.faults.fuzzing {target.name} {_kept(target, path)}"
        for path in done.found
    ]
    if done.failed and not found:
        last = done.output.decode("utf-8", "replace")[-300:]
        return [
            f"{target.name}: the process ended by itself ({plan.command('fuzzing', target.name)}): {last}"
        ]
    return found


def _kept(target: Target, path: Path) -> Path:
    data = path.read_bytes()
    place = CORPUS / target.name / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    place.write_bytes(data)
    return place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place
