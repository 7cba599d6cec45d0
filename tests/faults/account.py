"""What a part of the proof did and found, kept as JSON for the page of results."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Plan:
    """How much a part is to do.

    A part spreads these over its places (backends, targets) as it sees fit; `seed` decides everything random,
    so that the same plan does the same again.
    """

    seed: int
    operations: int
    faults: int
    only: str | None = None
    """The one place to do, where not all."""

    def chosen(self, places: Iterable[str]) -> list[str]:
        """Those of the places that are to be done; a `ValueError` where the only one is none of them."""
        known = list(places)
        if self.only not in (None, *known):
            raise ValueError(f"there is no place {self.only}, only {', '.join(known)}")
        return known if self.only is None else [self.only]

    def command(self, part: str, place: str) -> str:
        """What to type to have the same done again at a place."""
        much = f"--operations {self.operations} --faults {self.faults}"
        return f"python -m tests.faults {part} --seed {self.seed} {much} --only {place}"


@dataclass
class Account:
    """What was done in one place: checked operations and injected faults by kind, with the seeds used.

    `findings` are the promises that did not hold, each with the seed that shows it; an honest campaign may
    have some, and `make faults` then fails. `measures` are figures such as bytes of memory.
    """

    part: str
    place: str
    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    seeds: list[int] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    measures: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    commit: str = ""
    """What was put to the test."""

    def save(self, folder: Path = RESULTS) -> None:
        """Keep it beside the others, in place of an earlier one of the same part and place."""
        folder.mkdir(parents=True, exist_ok=True)
        self.commit = _commit()
        text = json.dumps(vars(self), indent=1, sort_keys=True)
        (folder / f"{self.part}-{self.place}.json").write_text(text + "\n")


def _commit() -> str:
    """The commit of the tree, marked where something differs from it."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    told = subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True, check=True)
    return told.stdout.strip()


class Part(Protocol):
    """A module `tests.faults.<part>.campaign` has this function; `python -m tests.faults` calls it.

    Each account is given as it is done: what is known is kept, whatever becomes of the rest.
    """

    def run(self, plan: Plan) -> Iterable[Account]: ...


def load_accounts(folder: Path = RESULTS) -> list[Account]:
    """All accounts that are kept, in the order of their names."""
    read = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    return [
        Account(**{**each, "operations": Counter(each["operations"]), "faults": Counter(each["faults"])})
        for each in read
    ]
