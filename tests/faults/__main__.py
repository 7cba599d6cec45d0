"""The long form: `python -m tests.faults [part ...]`, or all parts by `make faults`."""

import argparse
import random
import signal
import sys
from importlib import import_module

from .account import Part, Plan
from .page import PARTS, write_page


def main() -> int:
    """Do the parts asked for, keep what they found, and say whether every promise held."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))  # so that what was started is ended
    findings = [finding for part in asked.parts or PARTS for finding in _do(part, asked)]
    for finding in findings:
        print(f"  DID NOT HOLD: {finding}")
    return 1 if findings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all, unless named")
    parser.add_argument("--seed", type=int, help="replays a campaign; made up unless given")
    parser.add_argument("--scale", type=float, default=1.0, help="0.01 does a hundredth of the long form")
    parser.add_argument("--operations", type=int, help="in place of those of the long form")
    parser.add_argument("--faults", type=int, help="likewise")
    parser.add_argument("--only", help="one place (backend, target) of the part")
    parser.add_argument("--keep", action="store_true", help="put the results into docs/reliability.md")
    asked = parser.parse_args()
    if asked.keep and (asked.scale < 1 or asked.operations is not None or asked.faults is not None):
        parser.error("--keep is for the long form alone")
    return asked


def _do(part: str, asked: argparse.Namespace) -> list[str]:
    """What did not hold in one part."""
    plan = _plan_of(part, asked)
    print(f"{part}: {plan.operations:,} operations, {plan.faults:,} faults, --seed {plan.seed}", flush=True)
    campaign: Part = import_module(f"tests.faults.{part}.campaign")
    findings: list[str] = []
    for account in campaign.run(plan):
        print(
            f"  {account.place}: {account.operations.total():,} operations checked, "
            f"{account.faults.total():,} faults, {len(account.findings)} findings, {account.seconds:.0f} s",
            flush=True,
        )
        findings += account.findings
        if asked.keep:
            account.save()
            write_page()
    return findings


def _plan_of(part: str, asked: argparse.Namespace) -> Plan:
    seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    operations, faults = (int(PARTS[part][what] * asked.scale) for what in ("operations", "faults"))
    return Plan(
        seed,
        operations if asked.operations is None else asked.operations,
        faults if asked.faults is None else asked.faults,
        asked.only,
    )


if __name__ == "__main__":
    sys.exit(main())
