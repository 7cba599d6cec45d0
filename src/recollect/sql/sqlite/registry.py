"""One engine for each database file and process, and what happens to them at fork and at exit."""

import atexit
import logging
import os
import queue
import threading
import weakref

from .connection import EngineOptions
from .engine import FileEngine
from .fetcher import reset_threads
from .memory_engine import MemoryEngine

logger = logging.getLogger(__name__)

# The engine that new sessions of a file get, and all that are alive: an engine whose file was
# replaced goes on for the sessions that have it.
_current: dict[tuple[str, EngineOptions], FileEngine] = {}
_alive: weakref.WeakSet[FileEngine | MemoryEngine] = weakref.WeakSet()
_lock = threading.RLock()
# Engines of sessions that were garbage-collected. That may happen on any thread at any point, also while a
# fork holds the lock and waits for that very thread: so it is noted here, and counted by who can wait.
_dropped: queue.SimpleQueue[FileEngine] = queue.SimpleQueue()


def acquire_engine(path: str, options: EngineOptions) -> FileEngine | MemoryEngine:
    """The engine of a file, counted as used once more. The file itself is opened when first needed."""
    if path == ":memory:":
        memory = MemoryEngine(options)
        _alive.add(memory)
        return memory
    key = (os.path.realpath(os.path.expanduser(path)), options)
    _count_dropped()
    with _lock:
        engine = _current.get(key)
        if engine is None or engine.is_replaced():
            engine = _current[key] = FileEngine(*key, _count_dropped, _try_retire)
            _alive.add(engine)
        engine.handles += 1
        if engine.handles == 1:
            engine.need(True)
        return engine


def release_engine(engine: FileEngine | MemoryEngine) -> None:
    """Count one use less; after the last the file is closed, if no other comes soon."""
    if isinstance(engine, MemoryEngine):
        return engine.close()
    with _lock:
        engine.handles -= 1
        if engine.handles == 0 and not engine.need(False):
            _try_retire(engine)
    return None


def drop_engine(engine: FileEngine | MemoryEngine) -> None:
    """As `release_engine`, for a session that is garbage-collected: never waits."""
    if isinstance(engine, MemoryEngine):
        return engine.close()
    _dropped.put(engine)
    return engine.wake()


def _count_dropped() -> None:
    try:
        while True:
            release_engine(_dropped.get_nowait())
    except queue.Empty:
        return


def _try_retire(engine: FileEngine) -> bool:
    """Forget an engine that nobody uses, so that the next session opens the file anew."""
    with _lock:
        if engine.handles:
            return False
        key = (engine.path, engine.options)
        if _current.get(key) is engine:
            del _current[key]
        return True


@atexit.register
def close_all() -> None:
    """Close every file, so that nothing is left in a write-ahead log."""
    with _lock:
        engines = list(_alive)
        _current.clear()
    for engine in engines:
        try:
            engine.close()
        except Exception as error:  # noqa: BLE001 - the process ends; the others are to be closed too
            logger.warning("a database could not be closed at exit (%s)", type(error).__name__)


_forking: list[FileEngine | MemoryEngine] = []


def _before_fork() -> None:
    _lock.acquire()
    _forking[:] = _alive
    for engine in _forking:
        engine.before_fork()


def _after_fork_in_parent() -> None:
    for engine in _forking:
        engine.after_fork_in_parent()
    _forking.clear()
    _lock.release()


def _after_fork_in_child() -> None:
    global _lock
    reset_threads()
    for engine in _forking:
        engine.after_fork_in_child()
    _forking.clear()
    _lock = threading.RLock()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
