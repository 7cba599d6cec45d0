"""Whether what we depend on is known to be unsound: `python -m tests.security.audit`.

It ends with 0 only when every locked package was looked up. Where the advisory service cannot be reached it
says so and ends with 2: what could not be audited is never taken for sound. Anything else ends with 1.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement

LOCK = Path(__file__).parents[2] / "requirements.lock"
_FORBIDDEN = re.compile(
    r"\bAGPL|\bAffero|\bSSPL|Server Side Public|\bBUSL|Business Source|Commons Clause|Non-?Commercial"
    r"|(?<!L)(?<!Lesser )\bGPL|(?<!Lesser )General Public License",
    re.IGNORECASE,
)


_NOT_FOUND = "Dependency not found"  # what a service tells of all packages that knows none
_UNREACHED = re.compile(
    r"Could not connect to \w+'s vulnerability feed|not redirecting properly"
    r"|^requests\.exceptions\.(Connection|SSL|Proxy|ChunkedEncoding)Error\b"
    r"|^requests\.exceptions\.(Connect|Read)Timeout\b",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Verdict:
    """What an audit found."""

    audited: int
    skipped: tuple[str, ...]
    unsound: tuple[str, ...]
    failures: tuple[str, ...] = ()
    """Why the audit itself is not one of all that is locked, other than that nobody could be asked."""

    @property
    def code(self) -> int:
        """The exit code: 0 all sound, 1 something unsound or the audit failed, 2 nobody could be asked."""
        if self.unsound or self.failures or not (self.audited or self.skipped):
            return 1
        return 2 if self.skipped else 0

    def tell(self) -> str:
        """What a person reads."""
        if self.unsound:
            return "UNSOUND: " + "; ".join(self.unsound)
        if self.code == 1:
            return "THE AUDIT FAILED: " + "; ".join(self.failures or ("there was nothing to look up",))
        if self.code:
            return f"COULD NOT BE AUDITED: {len(self.skipped)} packages were not looked up and may be bad."
        return f"{self.audited} packages were looked up; no advisory concerns them."


def main() -> int:
    """Ask the advisory service about every locked package, and look at those that are installed."""
    lock = locked(LOCK.read_text("utf-8"))
    faults = not_as_locked(lock, installed()) + forbidden_licences(licences())
    for fault in faults:
        print(fault)
    verdict = read(_asked(), lock)
    print(verdict.tell())
    return 1 if faults else verdict.code


def _asked() -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    command += ["--no-deps", "--disable-pip", "--requirement", str(LOCK)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def read(ended: "subprocess.CompletedProcess[str]", wanted: Collection[str]) -> Verdict:
    """What an audit that has ended says of the packages that it was to look up."""
    try:
        verdict = judge(json.loads(ended.stdout), wanted)
    except ValueError:
        if _UNREACHED.search(ended.stderr):
            return Verdict(0, tuple(wanted), ())
        return Verdict(0, (), (), (f"pip-audit says {ended.stderr.strip()[-500:]}",))
    if ended.returncode and not verdict.unsound:  # it ends with 1 where it found something
        return replace(verdict, failures=(*verdict.failures, f"pip-audit ended with {ended.returncode}"))
    return verdict


def judge(report: Mapping[str, Any], wanted: Collection[str]) -> Verdict:
    """What a report of pip-audit says of the packages that it was to look up."""
    packages = report["dependencies"]
    reasons = {each["name"]: each["skip_reason"] for each in packages if "skip_reason" in each}
    unsound = tuple(
        f"{each['name']} {each['version']}: {', '.join(advisory['id'] for advisory in each['vulns'])}"
        for each in packages
        if each.get("vulns")
    )
    missing = sorted(set(wanted) - {_plain(each["name"]) for each in packages})
    failures = [f"{name} is locked, and was not looked up" for name in missing]
    failures += [why for why in reasons.values() if not why.startswith(_NOT_FOUND)]
    return Verdict(len(packages) - len(reasons), tuple(reasons), unsound, tuple(failures))


# --- what is installed ---


def locked(text: str) -> dict[str, str]:
    """The version of every package of a lock that is meant for this machine."""
    lines = (line.split(" --hash")[0].strip() for line in text.splitlines())
    wanted = [Requirement(line) for line in lines if line and not line.startswith(("#", "--"))]
    here = default_environment()
    return {
        _plain(each.name): str(each.specifier).removeprefix("==")
        for each in wanted
        if each.marker is None or each.marker.evaluate(dict(here))
    }


def installed() -> dict[str, str]:
    """The version of every package that is installed."""
    return {_plain(each.name): each.version for each in importlib.metadata.distributions()}


def not_as_locked(lock: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Packages that are not there, or in another version."""
    return [
        f"{name} is {there.get(name, 'not installed')}, and the lock says {version}"
        for name, version in lock.items()
        if there.get(name) != version
    ]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# --- licences ---


def licences() -> dict[str, str]:
    """What each locked package that is installed says of its licence."""
    names = locked(LOCK.read_text("utf-8"))
    found = (
        (each.name, each.metadata)
        for each in importlib.metadata.distributions()
        if _plain(each.name) in names
    )
    return {name: _licence(metadata) for name, metadata in found}


def _licence(metadata: Any) -> str:
    classifiers = [line for line in metadata.get_all("Classifier") or () if line.startswith("License ::")]
    told: Iterable[str | None] = (metadata.get("License-Expression"), *classifiers)
    short = (metadata.get("License") or "").splitlines()[:1]
    return "; ".join(each for each in (*told, *short) if each)


def forbidden_licences(told: Mapping[str, str]) -> list[str]:
    """Packages whose licence would bind our users beyond what MIT does."""
    return [f"{name} is under {licence}" for name, licence in told.items() if _FORBIDDEN.search(licence)]


if __name__ == "__main__":
    sys.exit(main())
