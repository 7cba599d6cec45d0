"""The page of results, `docs/reliability.md`, made from what the campaigns kept."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .account import Account, load_accounts

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
FOUND = Path(__file__).parent / "found.toml"

_HEADLINES = {
    "operations checked": ("sessions", "memory", "linearizability", "upgrades"),
    "calls and requests of the soak": ("soak",),
    "inputs fuzzed": ("fuzzing",),
}
_CANCELLED = "calls cancelled"  # too many and too small to be counted as faults
PARTS = tomllib.loads((Path(__file__).parent / "parts.toml").read_text())


def write_page() -> None:
    """Write the page anew."""
    PAGE.write_text(page_of(load_accounts(), tomllib.loads(FOUND.read_text())["found"]))


def page_of(accounts: Sequence[Account], found: Iterable[dict[str, str]]) -> str:
    """The whole page."""
    lines = [*_opening(accounts)]
    for name, part in PARTS.items():
        done = [each for each in accounts if each.part == name]
        lines += ["", f"## {part['title']}", "", part["told"].strip(), *_table(done)]
    return "\n".join([*lines, *_mended(found), ""])


def _opening(accounts: Sequence[Account]) -> Iterator[str]:
    yield "# Reliability: what was tried, and what held"
    yield ""
    yield "<!-- Made by `python -m tests.faults`; do not edit. -->"
    yield ""
    yield "`make faults` does all of this again, with new seeds; `python -m tests.faults sessions --seed N`"
    yield "replays one part. A short form, with fixed seeds, is in `make test`. What we promise is in"
    yield "[guarantees](explanation/guarantees.md)."
    yield ""
    yield "| | |"
    yield "|---|--:|"
    for told, parts in _HEADLINES.items():
        done = (account.operations for account in accounts if account.part in parts)
        yield f"| {told} | {_total(done):,} |"
    faults = sum((account.faults for account in accounts), Counter[str]())
    cancelled = faults.pop(_CANCELLED, 0)
    yield f"| faults injected | {faults.total():,} |"
    yield f"| calls cancelled in the middle | {cancelled:,} |"
    findings = sum(len(account.findings) for account in accounts)
    yield f"| promises that did not hold, or could not be decided | {findings:,} |"


def _table(accounts: Sequence[Account]) -> Iterator[str]:
    if not accounts:
        yield from ("", "Not run yet.")
        return
    yield ""
    yield "| where | checked | faults | did not hold | seeds | time | commit |"
    yield "|---|---|---|--:|---|--:|---|"
    for each in accounts:
        seeds = ", ".join(str(seed) for seed in each.seeds[:3]) + (" …" if len(each.seeds) > 3 else "")
        yield (
            f"| {each.place} | {_kinds(each.operations)} | {_kinds(each.faults)} | {len(each.findings)} "
            f"| {seeds} | {each.seconds:.0f} s | {each.commit} |"
        )
    for each in accounts:
        yield from _details(each)


def _details(account: Account) -> Iterator[str]:
    for finding in account.findings:
        yield from ("", f"**Did not hold** ({account.place}): {finding}")
    if account.measures:
        figures = " · ".join(f"{name} {value:,.6g}" for name, value in sorted(account.measures.items()))
        yield from ("", f"{account.place}: {figures}")


def _kinds(counts: Counter[str]) -> str:
    if not counts:
        return "–"
    kinds = " · ".join(f"{name} {count:,}" for name, count in counts.most_common())
    return kinds if len(counts) == 1 else f"**{counts.total():,}**: {kinds}"


def _mended(found: Iterable[dict[str, str]]) -> Iterator[str]:
    yield from ("", "## What was found, and mended", "")
    yield from ("| what was wrong | what showed it | the test that holds it |", "|---|---|---|")
    for each in found:
        yield f"| {each['what']} | {each['shown_by']} | `{each['test']}` |"


def _total(counts: Iterable[Counter[str]]) -> int:
    return sum(each.total() for each in counts)
