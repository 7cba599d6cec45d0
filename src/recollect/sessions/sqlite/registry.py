"""One engine for each database file and process, and what happens to them at fork and at exit."""

import atexit
import os
import threading
import weakref

from .connection import EngineOptions
from .engine import FileEngine, MemoryEngine, forget_threads

# The engine that new sessions of a file get, and all that are alive: an engine whose file was
# replaced goes on for the sessions that have it. The lock is re-entrant because a session that is
# garbage-collected releases its engine, whatever this thread is doing.
_current: dict[tuple[str, EngineOptions], FileEngine] = {}
_alive: weakref.WeakSet[FileEngine] = weakref.WeakSet()
_lock = threading.RLock()


def acquire_engine(path: str, options: EngineOptions) -> FileEngine | MemoryEngine:
    """The engine of a file, counted as used once more. The file itself is opened when first needed."""
    if path == ":memory:":
        return MemoryEngine(options)
    key = (os.path.realpath(os.path.expanduser(path)), options)
    with _lock:
        engine = _current.get(key)
        if engine is None or engine.is_replaced():
            engine = _current[key] = FileEngine(*key, _try_retire)
            _alive.add(engine)
        engine.handles += 1
        if engine.handles == 1:
            engine.need(True)
        return engine


def release_engine(engine: FileEngine | MemoryEngine) -> None:
    """Count one use less; after the last the file is closed, if no other comes soon."""
    if isinstance(engine, FileEngine):
        with _lock:
            engine.handles -= 1
            if engine.handles == 0:
                engine.need(False)
    else:
        engine.close()


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
        engine.close()


_forking: list[FileEngine] = []


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
    forget_threads()
    for engine in _forking:
        engine.after_fork_in_child()
    _forking.clear()
    _lock = threading.RLock()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
