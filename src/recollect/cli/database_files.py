"""Copies of a SQLite file: made while it is in use, verified, and put in the place of another file.

A log (`-wal`) that another file has left behind would be replayed into the new file, so it never stays beside
it. A copy is not in WAL mode: even if a log stayed there after a crash, an engine would refuse to open both.
"""

import os
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ..errors import ConflictError, DatabaseBusyError, NotADatabaseError, StorageError
from ..private_files import replace_privately
from ..sql.sqlite.file_identity import check_log
from ..sql.sqlite.migrations import LEDGER
from .database import find_damage
from .output import progress

# SQLite locks these bytes of a database that a process has open.
_LOCKED_FROM = 0x40000000
_LOCKED_BYTES = 512
_FLOCK = "hhqqi0q"

_BESIDE = ("-wal", "-shm", "-journal")
_PAGES = 1000  # copied at a time


def copy_file(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of a SQLite file, even while other processes write, and verify the copy.

    The copy appears complete or not at all. Its mode is 0600, regardless of the mode of the database. Raises
    `DatabaseBusyError` if a process uses the file at the path of the copy.
    """
    _refuse_same(source, target)
    with reserved(target), _explained(source):
        with replace_privately(target) as temporary:
            expected = _copy_checked(source, temporary)
            _remove_beside(target)
        _sync_folder(target)
    _compare(target, expected)


def restore_file(backup: Path, target: Path) -> Path | None:
    """Put a copy of a backup in the place of a database. Returns the path of the file that was there, if any.

    That file keeps its log. Raises `DatabaseBusyError` if a process uses the database, and `StorageError` if
    the backup is damaged, is not of Recollect, or is of a newer version. Nothing has changed then. At every
    moment the old file and its log exist under one name or the other, also if the command is interrupted.
    """
    target = Path(os.path.realpath(target))
    _refuse_same(backup, target)
    with reserved(target), _explained(backup):
        with replace_privately(target) as temporary:
            expected = _copy_checked(backup, temporary)
            _check_origin(temporary, backup)
            kept = _keep_aside(target)
            Path(f"{target}-journal").unlink(missing_ok=True)
        _remove_beside(target)  # until then, an engine refuses to open the new file beside the old log
        _sync_folder(target)
    _compare(target, expected)
    return kept


def _refuse_same(source: Path, target: Path) -> None:
    if target.exists() and source.exists() and os.path.samefile(source, target):
        raise ConflictError(f"{target} is the database itself: choose another file")


@contextmanager
def _explained(source: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise NotADatabaseError(f"{source} cannot be copied: {error}") from error


# --- the copy ---


def _copy_checked(source: Path, target: Path) -> tuple[int, ...]:
    """Copy and verify. Returns the measures by which the copy is recognised."""
    try:
        _copy(source, target)
        _check(target)
        return _measure(target)
    finally:
        _remove_beside(target)


def _copy(source: Path, target: Path) -> None:
    # Not read-only: a read-only connection leaves -wal and -shm files behind when it closes.
    address = f"{source.resolve().as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True)) as database, closing(sqlite3.connect(target)) as copy:
        check_log(str(source.resolve()))
        # The transaction pins a snapshot. Without it, each concurrent write would restart the copy.
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        with progress("copying") as shown:
            database.backup(
                copy, pages=_PAGES, progress=lambda _, left, total: shown.reach(total - left, total)
            )
        # So a log beside it is recognised as that of another file. The first opener switches to WAL again.
        copy.execute("PRAGMA journal_mode=DELETE")


def _check(path: Path) -> None:
    with progress("checking"), closing(sqlite3.connect(path)) as copy:
        damage = find_damage(copy)
    if damage:
        raise StorageError(
            "the copy is damaged, and so is the database: recover it before anything writes to it again"
        )


def _check_origin(copy: Path, backup: Path) -> None:
    """Raise if a copy is not a database of Recollect, or one of a newer version."""
    from .doctor.database import read_applied_steps, unknown_steps

    with closing(sqlite3.connect(copy)) as connection:
        applied = read_applied_steps(connection)
    if not applied:
        raise NotADatabaseError(f"{backup} is not a database of Recollect: it has no table {LEDGER}")
    if unknown := unknown_steps(applied):
        raise StorageError(
            f"{backup} was written by a newer version of Recollect ({', '.join(sorted(unknown))}):"
            " restore it with that version"
        )


def _measure(path: Path) -> tuple[int, ...]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as connection:
        names = ("page_count", "freelist_count", "schema_version")
        return tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)


def _compare(path: Path, expected: tuple[int, ...]) -> None:
    """Open a copy in its place, as anybody would, and compare it with what was verified."""
    if path.is_file() and _measure(path) != expected:
        raise StorageError(f"{path} changed while it was put in its place: is another process using it?")


# --- the place ---


@contextmanager
def reserved(path: Path) -> Iterator[None]:
    """Keep others from opening a database file. Raises `DatabaseBusyError` if a process uses it.

    Takes the locks that SQLite takes for exclusive access. Windows does not replace files that are open.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    if not path.is_file():
        yield
        return
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        lock = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_FROM, _LOCKED_BYTES, 0)
        try:
            fcntl.fcntl(file, getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK), lock)
        except (BlockingIOError, PermissionError) as error:
            raise DatabaseBusyError(
                f"{path} is in use: stop the service and every other process that has it open, then try"
                " again; nothing was changed"
            ) from error
        yield
    finally:
        os.close(file)


def _keep_aside(target: Path) -> Path | None:
    """Give a database and its log a second name. Returns the name, or `None` if there is nothing to keep."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = target.with_name(f"{target.name}.before-restore-{stamp}")
    ends = [end for end in ("", "-wal", "-journal") if Path(f"{target}{end}").exists()]
    for end in ends:
        _link_or_copy(Path(f"{target}{end}"), Path(f"{aside}{end}"))
    _sync_folder(target)
    return aside if ends else None


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)
        with target.open("rb+") as file:
            os.fsync(file.fileno())


def _remove_beside(path: Path) -> None:
    for end in _BESIDE:
        Path(f"{path}{end}").unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    """Make the names of files durable. Windows cannot open folders."""
    with suppress(PermissionError):
        folder = os.open(path.resolve().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
