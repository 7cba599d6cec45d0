"""`python -m tests.sdk_suite`: run the SDK's session tests, and compare the failures with the list.

`--update` writes the list and the page from the outcome; tests that are new in it have no reason yet.
`--page` runs nothing, and writes the page after the list was edited by hand.
`--only TEXT` runs the files whose path contains the text, and compares those alone.
"""

import argparse
import sys
import time
from dataclasses import replace
from importlib.metadata import version

from . import expectations as lists
from .expectations import Expectations
from .packages import fetch
from .running import Outcomes, run_file, test_files


def main() -> int:
    """0 if the failures are those of the list, each with a reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.sdk_suite", description=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT")
    arguments = parser.parse_args()
    known = lists.read()
    if arguments.page:
        lists.write(known)
        return 0
    packages = fetch()
    files = [file for file in test_files(packages) if arguments.only in file]
    outcomes = Outcomes(set(), {})
    for file in files:
        started = time.monotonic()
        run_file(packages, file, outcomes)
        print(f"{file}: {time.monotonic() - started:.0f} s", flush=True)
    relevant = _limited(known, files)
    is_same = _report(relevant, outcomes)
    if arguments.update and not arguments.only:
        lists.write(known.updated(outcomes, version("openai-agents")))
    return 0 if is_same and not known.unexplained else 1


def _limited(known: Expectations, files: list[str]) -> Expectations:
    """The list without the tests of files that were not run."""
    reasons = [
        replace(reason, tests=[test for test in reason.tests if test.split("::")[0] in files])
        for reason in known.reasons
    ]
    return Expectations(known.sdk, reasons)


def _report(known: Expectations, outcomes: Outcomes) -> bool:
    new, gone = known.new_failures(outcomes), known.gone(outcomes)
    for test in sorted(new):
        print(f"NEW FAILURE {test}: {outcomes.failed[test].splitlines()[:1]}")
    for test in sorted(gone):
        print(f"PASSES OR GONE {test}")
    for test in sorted(known.unexplained - gone):
        print(f"WITHOUT A REASON {test}")
    print(
        f"{len(outcomes.passed)} passed, {len(outcomes.failed)} failed,"
        f" {len(new)} of them new; {len(gone)} expected failures are gone"
    )
    return not new and not gone


if __name__ == "__main__":
    sys.exit(main())
