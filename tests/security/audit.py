"""Whether what we depend on is known to be unsound: `python -m tests.security.audit`.

It ends with 0 only when every locked package was looked up. Where the advisory service cannot be reached it
says so and ends with 2: what could not be audited is never taken for sound.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Verdict:
    """What an audit found."""

    audited: int
    skipped: tuple[str, ...]
    unsound: tuple[str, ...]

    @property
    def code(self) -> int:
        """The exit code: 0 all sound, 1 something unsound, 2 something not audited."""
        return 1 if self.unsound else 2 if self.skipped or not self.audited else 0

    def tell(self) -> str:
        """What a person reads."""
        if self.unsound:
            return "UNSOUND: " + "; ".join(self.unsound)
        if self.code:
            return f"COULD NOT BE AUDITED: {len(self.skipped)} packages were not looked up and may be bad."
        return f"{self.audited} packages were looked up; no advisory concerns them."


def main() -> int:
    """Ask the advisory service about every locked package, and look at those that are installed."""
    faults = not_as_locked(locked(LOCK.read_text("utf-8")), installed()) + forbidden_licences(licences())
    for fault in faults:
        print(fault)
    verdict = judge(_asked())
    print(verdict.tell())
    return 1 if faults else verdict.code


def _asked() -> Mapping[str, Any]:
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    command += ["--no-deps", "--disable-pip", "--requirement", str(LOCK)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        told: Mapping[str, Any] = json.loads(ended.stdout)
    except ValueError:
        told = {"dependencies": []}
        print(ended.stderr.strip()[-500:], file=sys.stderr)
    return told


def judge(report: Mapping[str, Any]) -> Verdict:
    """What a report of pip-audit says."""
    packages = report["dependencies"]
    skipped = tuple(each["name"] for each in packages if "skip_reason" in each)
    unsound = tuple(
        f"{each['name']} {each['version']}: {', '.join(advisory['id'] for advisory in each['vulns'])}"
        for each in packages
        if each.get("vulns")
    )
    return Verdict(len(packages) - len(skipped), skipped, unsound)


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
