"""Make the databases that are kept, each by the code of its release: `python -m tests.faults.upgrades.make`.

Give names of releases to make only those. What is kept is made once and never again: it is what was released.
"""

import gzip
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from recollect.testing.servers.postgres import PostgresServer

from ...sessions.postgres.database import sql
from .postgres_tools import run_tool
from .releases import FOLDER, RELEASES, Release

_CONTENTS = Path(__file__).with_name("contents.py")
_TREE = Path(__file__).parents[3]


def main(names: Sequence[str]) -> None:
    """Make what is kept of these releases; of those that nothing is kept of yet, if none is named."""
    wanted = [each for each in RELEASES if each.name in names or not (names or each.file.exists())]
    FOLDER.mkdir(exist_ok=True)
    with PostgresServer() as server:
        for release in wanted:
            with tempfile.TemporaryDirectory() as folder:
                code = _Code(release, Path(folder))
                code.make_file(Path(folder) / "kept.db")
                if release.revision is not None:
                    code.make_dump(server.url)
            print(f"{release.name} is kept")


class _Code:
    """The code of a release, to be run."""

    def __init__(self, release: Release, folder: Path) -> None:
        self._release = release
        self._folder = folder
        tree = subprocess.run(
            ["git", "archive", release.commit, "src"], cwd=_TREE, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=tree.stdout, check=True)

    def make_file(self, path: Path) -> None:
        self._fill(str(path), "sqlite")
        # The last to close a file moves its log into it.
        assert [each.name for each in path.parent.glob(f"{path.name}*")] == [path.name]
        _keep(self._release.file, path.read_bytes())

    def make_dump(self, server: str) -> None:
        name = self._release.name.replace("-", "_")
        sql(server, f"CREATE DATABASE {name}")
        url = server.rpartition("/")[0] + f"/{name}"
        self._run("-m", "recollect", "migrate", url)
        self._fill(url, "postgres")
        _keep(self._release.dump, run_tool("pg_dump", url, "--no-owner", "--no-privileges"))

    def _fill(self, url: str, database: str) -> None:
        features = self._release.features
        self._run(str(_CONTENTS), "write", url, *features)
        _keep(self._release.manifest_file(database), self._run(str(_CONTENTS), "read", url, *features))

    def _run(self, *arguments: str) -> bytes:
        place = {"PYTHONPATH": str(self._folder / "src")}
        ended = subprocess.run(
            [sys.executable, *arguments],
            env=os.environ | place,
            cwd=self._folder,
            capture_output=True,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"{self._release.name}: {ended.stderr.decode()[-4000:]}")
        return ended.stdout


def _keep(file: Path, content: bytes) -> None:
    file.write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
