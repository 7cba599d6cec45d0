"""`python -m tests.system test`: look for the programs that tests need, and install those that are missing.

It runs before anything is downloaded, so it needs Python alone. Root on Debian gets the packages. Anyone else
gets one line that says what is missing and how to get it.

To need one more package, add its line to `NEEDS`: the package of Debian, and a program that it contains.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

_TESTS = {
    "nodejs": "node",
    "npm": "npm",
    "chromium": "chromium",
    "gcc": "cc",  # for a clock that jumps
    "libc6-dev": "/usr/include/stdio.h",
}
NEEDS = {
    "test": _TESTS,
    "proof": {
        **_TESTS,
        "postgresql": "initdb",  # a PostgreSQL without pgvector
        "mariadb-server": "mariadbd",
    },
}
"""What each target of the Makefile needs: a package, and a program or file that it contains."""

_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/lib/postgresql/*/bin")  # of servers, often not in PATH
_OTHER_NAMES = {"chromium": ("chromium-browser", "google-chrome", "google-chrome-stable"), "cc": ("gcc",)}
_CHROMIUM = "RECOLLECT_TEST_CHROMIUM"
_OLDEST_NODE = 18


def main(target: str) -> int:
    """0 if everything is there, or was installed."""
    missing = find_missing(target)
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        install(missing)
        missing = find_missing(target)
    if missing:
        print(describe(target, missing), file=sys.stderr)
    return 1 if missing else 0


def find_missing(target: str) -> list[str]:
    """The packages whose program is missing."""
    return [package for package, program in NEEDS[target].items() if not is_there(program)]


def is_there(program: str) -> bool:
    """Whether a program or a file exists, and is not too old."""
    if program.startswith("/"):
        return os.path.exists(program)
    if program == "chromium" and os.environ.get(_CHROMIUM):
        return True
    folders = (found for pattern in _FOLDERS for found in sorted(glob.glob(pattern)))
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *folders))
    names = (program, *_OTHER_NAMES.get(program, ()))
    found = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    return found is not None and (program != "node" or _major_version(found) >= _OLDEST_NODE)


def _major_version(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0


def install(packages: Sequence[str]) -> None:
    """Install packages of Debian. An error is shown, and the caller looks again what is missing."""
    print(f"installing {', '.join(packages)}", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", *packages]):
        subprocess.run(["apt-get", "-qq", *command], env=environment, stdout=subprocess.DEVNULL, check=False)


def describe(target: str, missing: Sequence[str]) -> str:
    """One line: what is missing, and how to get it."""
    notes = []
    if "chromium" in missing:
        notes.append(f"{_CHROMIUM} may name another Chromium")
    if "nodejs" in missing:
        notes.append(f"Node must be version {_OLDEST_NODE} or newer")
    end = f" ({'; '.join(notes)})" if notes else ""
    names = " ".join(missing)
    return f"programs for `make {target}` are missing: as root, run `apt-get install {names}`{end}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
