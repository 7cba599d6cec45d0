"""The list of tests that are expected to fail, each with its reason, and the page that shows the list."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from .running import Outcomes

LIST = Path(__file__).parent / "expected.toml"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sdk-suite.md"
UNEXPLAINED = "Not explained yet"


@dataclass
class Reason:
    """Why tests fail, and which."""

    name: str
    why: str
    tests: list[str] = field(default_factory=list)
    may_pass: bool = False
    """Whether the tests depend on who is faster, so that they sometimes pass."""


@dataclass
class Expectations:
    """The version of the SDK, and every reason."""

    sdk: str
    reasons: list[Reason]

    @property
    def tests(self) -> set[str]:
        """All tests that may fail."""
        return {test for reason in self.reasons for test in reason.tests}

    @property
    def unexplained(self) -> set[str]:
        """Tests without a reason."""
        return {test for reason in self.reasons if reason.name == UNEXPLAINED for test in reason.tests}

    def new_failures(self, outcomes: Outcomes) -> set[str]:
        """Tests that fail and are not expected to."""
        return outcomes.failed.keys() - self.tests

    def gone(self, outcomes: Outcomes) -> set[str]:
        """Tests that are expected to fail, and pass, or no longer exist."""
        certain = {test for reason in self.reasons if not reason.may_pass for test in reason.tests}
        return certain - outcomes.failed.keys()

    def updated(self, outcomes: Outcomes, sdk: str) -> "Expectations":
        """The same reasons with the tests that fail now; new failures are not explained yet."""
        gone, new = self.gone(outcomes), self.new_failures(outcomes)
        kept = [
            replace(reason, tests=[test for test in reason.tests if test not in gone])
            for reason in self.reasons
            if reason.name != UNEXPLAINED
        ]
        unexplained = sorted(new | (self.unexplained - gone))
        if unexplained:
            kept.append(Reason(UNEXPLAINED, "Find the reason of each, or mend it.", unexplained))
        return Expectations(sdk, [each for each in kept if each.tests])


def read() -> Expectations:
    """The list as it is committed."""
    stored = tomllib.loads(LIST.read_text())
    return Expectations(stored["sdk"], [Reason(**each) for each in stored["reason"]])


def write(expectations: Expectations) -> None:
    """Write the list and the page."""
    LIST.write_text(as_toml(expectations))
    PAGE.write_text(as_page(expectations))


def as_toml(expectations: Expectations) -> str:
    """The list as a file."""
    lines = [
        "# The tests of the Agents SDK that fail with our classes, and why. See the package's docstring.",
        f"sdk = {_quoted(expectations.sdk)}",
    ]
    for reason in expectations.reasons:
        lines += ["", "[[reason]]", f"name = {_quoted(reason.name)}", f"why = {_quoted(reason.why)}"]
        lines += ["may_pass = true"] if reason.may_pass else []
        lines += ["tests = [", *(f"    {_quoted(test)}," for test in sorted(reason.tests)), "]"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML, which has the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False)


def as_page(expectations: Expectations) -> str:
    """The list as a page of the documentation."""
    count = len(expectations.tests)
    parts = [
        "# The Agents SDK's own session tests",
        "`make sdk-suite` downloads the source distribution of the Agents SDK"
        f" ({expectations.sdk}) and runs its session tests, and its tests of runs that use sessions, with our"
        " classes instead of its own. It fails if a test fails that is not listed here, or if a listed test"
        f" passes. {count} tests are expected to fail, for these reasons.",
        "This page is generated from `tests/sdk_suite/expected.toml`: `python -m tests.sdk_suite --update`.",
    ]
    for reason in expectations.reasons:
        parts += [f"## {reason.name}", reason.why, "\n".join(_lines(reason.tests))]
    return "\n\n".join(parts) + "\n"


def _lines(tests: Iterable[str]) -> list[str]:
    """Each test function once, with the number of its cases that fail."""
    functions = Counter(test.split("[", 1)[0] for test in sorted(tests))
    return [f"- `{name}`" + (f" ({count} cases)" if count > 1 else "") for name, count in functions.items()]
