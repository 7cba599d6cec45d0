"""The registry of engines, one for each database file and process. It handles forks and the exit too."""

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

# `_current` has the engine that new sessions of a file get. `_alive` has all engines: also those that nobody
# uses any more, and that are about to close their files.
_current: dict[tuple[str, EngineOptions], FileEngine] = {}
_alive: weakref.WeakSet[FileEngine | MemoryEngine] = weakref.WeakSet()
_lock = threading.RLock()
# Engines of sessions that were garbage-collected. A collection may run on any thread at any point, even while
# a fork holds the lock and waits for that thread. So a finalizer never takes the lock: it puts the engine
# here, and a caller that may wait releases it later.
_dropped: queue.SimpleQueue[FileEngine] = queue.SimpleQueue()


def acquire_engine(path: str, options: EngineOptions) -> FileEngine | MemoryEngine:
    """The engine of a file, for one more user. The file is opened when it is first needed."""
    if path == ":memory:":
        memory = MemoryEngine(options)
        _alive.add(memory)
        return memory
    key = (os.path.realpath(os.path.expanduser(path)), options)
    _release_dropped()
    with _lock:
        engine = _current.get(key)
        # Sessions that are still open keep the engine of a replaced file, which refuses to go on.
        if engine is None or (not engine.handles and engine.is_replaced()):
            engine = _current[key] = FileEngine(*key, _release_dropped, _try_retire)
            _alive.add(engine)
        engine.handles += 1
        if engine.handles == 1:
            engine.set_needed(True)
        return engine


def release_engine(engine: FileEngine | MemoryEngine) -> None:
    """Remove one user of an engine. After the last one the file is closed, unless a new one comes soon."""
    if isinstance(engine, MemoryEngine):
        return engine.close()
    with _lock:
        engine.handles -= 1
        if engine.handles == 0 and not engine.set_needed(False):
            _try_retire(engine)
    return None


def drop_engine(engine: FileEngine | MemoryEngine) -> None:
    """Like `release_engine`, for the finalizer of a session: never waits."""
    if isinstance(engine, MemoryEngine):
        return engine.close()
    _dropped.put(engine)
    return engine.wake()


def _release_dropped() -> None:
    try:
        while True:
            release_engine(_dropped.get_nowait())
    except queue.Empty:
        return


def _try_retire(engine: FileEngine) -> bool:
    """Remove an engine from the registry if it has no users. The next session opens the file again."""
    with _lock:
        if engine.handles:
            return False
        key = (engine.path, engine.options)
        if _current.get(key) is engine:
            del _current[key]
        return True


@atexit.register
def close_all() -> None:
    """Close every file at exit, so that no data is left in a write-ahead log."""
    with _lock:
        engines = list(_alive)
        _current.clear()
    for engine in engines:
        try:
            engine.close()
        except Exception as error:  # noqa: BLE001 - the process ends, and the other files must be closed too
            logger.warning("closing a database at exit failed (%s)", type(error).__name__)


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
