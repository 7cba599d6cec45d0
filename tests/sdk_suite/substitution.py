"""A pytest plugin: our session classes in place of the SDK's, and each outcome written as it is known.

It is loaded in the directory of the SDK's tests, so it must not import the package `tests`.
"""

import asyncio
import contextlib
import functools
import importlib
import inspect
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import recollect

# Each module of the SDK that exports session classes, and the classes.
_CLASSES = {
    "agents": ("SQLiteSession", "OpenAIConversationsSession"),
    "agents.memory": ("SQLiteSession", "OpenAIConversationsSession"),
    "agents.memory.sqlite_session": ("SQLiteSession",),
    "agents.memory.openai_conversations_session": ("OpenAIConversationsSession",),
    "agents.extensions.memory": (
        "AdvancedSQLiteSession",
        "AsyncSQLiteSession",
        "EncryptedSession",
        "RedisSession",
        "SQLAlchemySession",
    ),
    "agents.extensions.memory.advanced_sqlite_session": ("AdvancedSQLiteSession",),
    "agents.extensions.memory.async_sqlite_session": ("AsyncSQLiteSession",),
    "agents.extensions.memory.encrypt_session": ("EncryptedSession",),
    "agents.extensions.memory.redis_session": ("RedisSession",),
    "agents.extensions.memory.sqlalchemy_session": ("SQLAlchemySession",),
}
# A test that waits for ever, such as for a private method that our classes do not call, leaves the processor
# alone. One that is slow because the machine is busy does not. So what counts is idle time.
_SECONDS = 12.0  # that a test may be idle
_SECONDS_BLOCKED = 45.0  # that all tests may be idle: a thread of one blocks the process
_LONGEST = 300.0  # for a test that is not idle either
_IDLE = 0.02  # the part of the time for which an idle process uses a processor
_outcomes = Path(os.environ["RECOLLECT_SUITE_OUTCOMES"])


def _substitute() -> None:
    modules = {name: importlib.import_module(name) for name in _CLASSES}
    for module, names in _CLASSES.items():
        for name in names:
            setattr(modules[module], name, getattr(recollect, name))


class _Patience:
    """Measures for how long this process and its children were idle, or busy with the same thing."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._started = self._looked = time.monotonic()
        self._used = _processor_time()

    def is_over(self, seconds: float) -> bool:
        """Whether the process was idle for so many seconds; to be asked again and again."""
        now, used = time.monotonic(), _processor_time()
        if now - self._started > _LONGEST:
            return True
        if now - self._looked < seconds:
            return False
        was_idle = used - self._used < _IDLE * (now - self._looked)
        self._looked, self._used = now, used
        return was_idle


def _processor_time() -> float:
    """Seconds for which this process and those that it has started have used a processor."""
    used = sum(os.times()[:4])  # its own, and of children that have ended
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            used += sum(child.cpu_times()[:4])
    return used


_patience = _Patience()


def _write(test: str, outcome: str, error: str = "") -> None:
    _patience.restart()
    with _outcomes.open("a") as file:
        file.write(json.dumps({"test": test, "outcome": outcome, "error": error}) + "\n")


def _watch() -> None:
    """End the process when it is blocked; the runner starts another for the tests that are left."""
    while not _patience.is_over(_SECONDS_BLOCKED):
        time.sleep(1)
    os._exit(3)


def _with_time_limit(test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    async def limited(*args: Any, **kwargs: Any) -> Any:
        running, patience = asyncio.ensure_future(test(*args, **kwargs)), _Patience()
        while not (await asyncio.wait({running}, timeout=1))[0]:
            if patience.is_over(_SECONDS):
                running.cancel()
                await asyncio.wait({running}, timeout=1)
                raise TimeoutError
        return running.result()

    return limited


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each asynchronous test a time limit, and watch all."""
    _patience.restart()
    threading.Thread(target=_watch, daemon=True).start()
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = _with_time_limit(item.obj)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note that a test begins: it may end the process."""
    _write(nodeid, "started")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the outcome of a test, and of what goes wrong before and after it."""
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        _write(report.nodeid, report.outcome, str(getattr(crash, "message", ""))[:300])


def pytest_sessionfinish(exitstatus: int) -> None:
    """Note the end, if all tests of the file were found."""
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        _write("", "finished")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Leave at once: threads of tests that were given up may never end."""
    os._exit(0)


_substitute()
