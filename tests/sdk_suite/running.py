"""Running the SDK's tests file by file, also past those that end or block the process."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .packages import Packages

# Sessions themselves, then runs that use them.
PATHS = (
    "tests/memory",
    "tests/extensions/memory",
    "tests/deferred_session_writes",
    "tests/test_agent_runner.py",
    "tests/test_agent_runner_streamed.py",
    "tests/test_hitl_session_scenario.py",
    "tests/test_max_turns.py",
    "tests/test_native_tool_failure_history.py",
    "tests/test_programmatic_tool_calling.py",
    "tests/test_run_impl_resume_paths.py",
    "tests/test_soft_cancel.py",
    "tests/test_tool_batch_failure_history.py",
    "tests/test_tool_failure_boundaries.py",
)
# Sessions of services that we have no class for.
_LEFT_OUT = ("test_dapr_session.py", "test_mongodb_session.py")
_SECONDS_PER_FILE = 900
_OPTIONS = ("-q", "-p", "substitution", "-p", "no:cacheprovider", "-p", "no:timeout")
_BLOCKED = "the test ended or blocked the process"
_HERE = Path(__file__).parent


@dataclass
class Outcomes:
    """The outcome of each test, and the error of each that failed."""

    passed: set[str]
    failed: dict[str, str]

    def add(self, lines: list[str]) -> None:
        """Take in what the plugin has written. A test fails if anything of it does, or if it has no end."""
        entries = [entry for entry in map(json.loads, lines) if entry["test"]]
        ended = {entry["test"] for entry in entries if entry["outcome"] != "started"}
        for entry in entries:
            test = entry["test"]
            if entry["outcome"] == "failed":
                self.failed.setdefault(test, entry["error"])
            elif test not in ended:
                self.failed[test] = _BLOCKED
            elif entry["outcome"] == "passed":
                self.passed.add(test)
        self.passed -= self.failed.keys()


def test_files(packages: Packages) -> list[str]:
    """The files with the tests to run, as the SDK names them."""
    found = [file for path in PATHS for file in _tests_in(packages.sources / path)]
    return [str(file.relative_to(packages.sources)) for file in found]


def _tests_in(path: Path) -> list[Path]:
    files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    return [file for file in files if file.name not in _LEFT_OUT]


def run_file(packages: Packages, file: str, outcomes: Outcomes) -> None:
    """Run one file of tests, again without those that are done as often as a test ends the process."""
    done: set[str] = set()
    while True:
        lines = _run(packages, file, done)
        outcomes.add(lines)
        begun = {json.loads(line)["test"] for line in lines}
        done |= begun
        if "" in begun:  # the line that pytest has come to its end
            return
        if not begun:
            outcomes.failed[file] = "pytest could not run the file"
            return


def _run(packages: Packages, file: str, without: set[str]) -> list[str]:
    """The lines that the plugin has written."""
    deselected = [f"--deselect={test}" for test in sorted(without)]
    command = [sys.executable, "-m", "pytest", *_OPTIONS, *deselected, file]
    with TemporaryDirectory() as folder:
        written = Path(folder) / "outcomes"
        written.touch()
        process = subprocess.Popen(
            command,
            cwd=packages.sources,
            env=_environment(packages, written),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _wait(process)
        return written.read_text().splitlines()


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait for pytest, and end the processes that its tests have left."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_SECONDS_PER_FILE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(packages: Packages, written: Path) -> dict[str, str]:
    path = os.pathsep.join(str(part) for part in (packages.extras, _HERE))
    ours = {"PYTHONPATH": path, "OPENAI_API_KEY": "none", "RECOLLECT_SUITE_OUTCOMES": str(written)}
    return {**os.environ, **ours}
