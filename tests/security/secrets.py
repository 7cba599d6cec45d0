"""Look for secrets in what is tracked: `python -m tests.security.secrets`.

What looks like one and is none is listed in `secrets.toml` with the reason; anything else fails, and so does
a line of the list that nothing is found for any more.
"""

import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeAlias

TREE = Path(__file__).parents[2]
LIST = Path(__file__).with_name("secrets.toml")
_NO_TEXT = (".gz", ".png", ".min.js", "requirements.lock")  # packed, drawn, vendored, hashes of packages

Found: TypeAlias = Counter[tuple[str, str]]
"""How many there are by file and kind."""


def main() -> int:
    """Scan, and say what is not explained."""
    with ProcessPoolExecutor() as pool:
        found: Found = Counter(
            each for some in pool.map(_scan, tracked_files(), chunksize=32) for each in some
        )
    told = complaints(found, explained(LIST.read_text("utf-8")))
    for complaint in told:
        print(complaint)
    return 1 if told else 0


def tracked_files() -> list[str]:
    """The files that git has, without those that hold no text of ours."""
    listed = subprocess.run(["git", "ls-files"], cwd=TREE, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if not name.endswith(_NO_TEXT)]


def found_in(names: Iterable[str]) -> Found:
    """What looks like a secret in some files."""
    return Counter(found for name in names for found in _scan(name))


def _scan(name: str) -> list[tuple[str, str]]:
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings

    with default_settings():
        return [(name, secret.type) for secret in scan_file(str(TREE / name))]


def explained(text: str) -> Found:
    """How many are known to be none, by file and kind."""
    lines = tomllib.loads(text)["known"]
    assert all(line["why"] for line in lines)
    return Counter({(line["file"], line["kind"]): line.get("count", 1) for line in lines})


def complaints(found: Found, known: Found) -> list[str]:
    """What was found and is not explained, and what is explained and was not found; never the text itself."""
    new = [
        f"{file}: {number} × {kind}, not explained in {LIST.name}"
        for (file, kind), number in (found - known).items()
    ]
    gone = [
        f"{file}: {number} × {kind} in {LIST.name}, not found"
        for (file, kind), number in (known - found).items()
    ]
    return new + gone


if __name__ == "__main__":
    sys.exit(main())
