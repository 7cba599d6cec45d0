"""`recollect doctor`: check configuration, database and models, and suggest fixes."""

import argparse
import asyncio
from collections.abc import Sequence

from ..arguments import Commands, add_command, add_database_options, add_json_option
from ..database import resolve_url
from ..output import colorize, indent_lines, one_line, print_json, print_note
from .checks import run_checks
from .database import Finding

_MARKS = {"ok": ("✓", "green"), "off": ("–", "dim"), "warning": ("!", "yellow"), "wrong": ("✗", "red")}


def add_doctor_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    doctor = add_command(
        commands,
        "doctor",
        "check configuration, database and models, and suggest fixes",
        "  recollect doctor\n  recollect doctor --config recollect.toml --json\n",
        _doctor,
    )
    add_database_options(doctor, tenant=False)
    add_json_option(doctor)


def _doctor(options: argparse.Namespace) -> int:
    findings = asyncio.run(run_checks(options.config, options.url, lambda: resolve_url(options)))
    is_well = all(finding.state != "wrong" for finding in findings)
    if options.json:
        print_json({"ok": is_well, "checks": [vars(finding) for finding in findings]})
    else:
        print("\n".join(_render(findings)))
        print_note("all checks passed" if is_well else "a check failed: see the fixes above")
    return 0 if is_well else 1


def _render(findings: Sequence[Finding]) -> list[str]:
    widest = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        mark, color = _MARKS[finding.state]
        lines.append(f"{colorize(mark, color)} {finding.name:{widest}}  {one_line(finding.found)}")
        if finding.fix:
            lines.append(indent_lines(finding.fix, " " * (widest + 4) + "→ "))
    return lines
