"""`recollect doctor`: what is configured, reachable and migrated, and how to mend what is not."""

import argparse
import asyncio
from collections.abc import Sequence

from ..arguments import Commands, add_command, add_json, add_place
from ..database import url_of
from ..output import indented, one_line, painted, say, tell_json
from .checks import look
from .database import Finding

_MARKS = {"ok": ("✓", "green"), "off": ("–", "dim"), "warning": ("!", "yellow"), "wrong": ("✗", "red")}


def add_doctor_parser(commands: Commands) -> None:
    """Add the command to the others."""
    doctor = add_command(
        commands,
        "doctor",
        "say what is configured, reachable and migrated, and how to mend what is not",
        "  recollect doctor\n  recollect doctor --config recollect.toml --json\n",
        _doctor,
    )
    add_place(doctor, tenant=False)
    add_json(doctor)


def _doctor(options: argparse.Namespace) -> int:
    findings = asyncio.run(look(options.config, options.url, lambda: url_of(options)))
    is_well = all(finding.state != "wrong" for finding in findings)
    if options.json:
        tell_json({"ok": is_well, "checks": [vars(finding) for finding in findings]})
    else:
        print("\n".join(_told(findings)))
        say("all is well" if is_well else "something is wrong: see above how to mend it")
    return 0 if is_well else 1


def _told(findings: Sequence[Finding]) -> list[str]:
    widest = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        mark, colour = _MARKS[finding.state]
        lines.append(f"{painted(mark, colour)} {finding.name:{widest}}  {one_line(finding.found)}")
        if finding.fix:
            lines.append(indented(finding.fix, " " * (widest + 4) + "→ "))
    return lines
