"""The long form: `python -m tests.faults [part ...]`, or all parts by `make faults`."""

import argparse
import random
import sys
from importlib import import_module

from .account import Account, Plan
from .page import PARTS, write_page


def main() -> int:
    """Do the parts asked for, keep what they found, and say whether every promise held."""
    asked = _arguments()
    accounts: list[Account] = []
    for part in asked.parts or PARTS:
        accounts += _do(part, asked)
    if asked.keep:
        write_page()
    findings = [finding for account in accounts for finding in account.findings]
    for finding in findings:
        print(f"  DID NOT HOLD: {finding}")
    return 1 if findings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all, unless named")
    parser.add_argument("--seed", type=int, help="replays a campaign; made up unless given")
    parser.add_argument("--scale", type=float, default=1.0, help="0.01 does a hundredth of the long form")
    parser.add_argument("--only", help="one place (backend, target) of the part")
    parser.add_argument("--keep", action="store_true", help="put the results into docs/reliability.md")
    return parser.parse_args()


def _do(part: str, asked: argparse.Namespace) -> list[Account]:
    seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    operations, faults = (int(PARTS[part][what] * asked.scale) for what in ("operations", "faults"))
    print(f"{part}: {operations:,} operations, {faults:,} faults, --seed {seed}", flush=True)
    campaign = import_module(f"tests.faults.{part}.campaign")
    accounts: list[Account] = campaign.run(Plan(seed, operations, faults, asked.only))
    for account in accounts:
        if asked.keep:
            account.save()
        print(
            f"  {account.place}: {account.operations.total():,} operations checked, "
            f"{account.faults.total():,} faults, {len(account.findings)} findings, {account.seconds:.0f} s",
            flush=True,
        )
    return accounts


if __name__ == "__main__":
    sys.exit(main())
