"""A change of one configuration file: planned first, then written at once, with a copy of the old file."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...private_files import replace_privately
from .files import ConfigurationFileError, Format

_BACKUP = ".before-recollect"
_NEW_MODE = 0o644  # of a file in a project, which others read, too


@dataclass(frozen=True)
class Change:
    """The text of a file before and after; `None` where there is no file."""

    path: Path
    before: str | None = field(repr=False)
    after: str | None = field(repr=False)
    is_undo: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.before == self.after

    def lines(self) -> Iterator[str]:
        """The lines of the changed part only: the rest may hold secrets of other servers."""
        before, after = self.before or "", self.after or ""
        start = _count_equal(before, after)
        end = _count_equal(before[start:][::-1], after[start:][::-1])
        for sign, text in (("-", before), ("+", after)):
            yield from (
                f"{sign} {line}" for line in text[start : len(text) - end].splitlines() if line.strip()
            )

    def check(self) -> None:
        """Raise an error if the file is no longer as it was when the change was planned."""
        if _read(self.path) != self.before:
            raise ConfigurationFileError(f"{self.path} was changed meanwhile; run this again")

    def apply(self) -> None:
        """Write the file completely or not at all. The first change keeps a copy of the old file."""
        self.check()
        backup = _backup_of(self.path)
        if not self.is_undo and self.before is not None and not backup.exists():
            _write(backup, self.before, _mode_of(self.path))
        if self.after is None:
            self.path.unlink()
        else:
            _write(self.path, self.after, _mode_of(self.path))
        if self.is_undo:
            backup.unlink(missing_ok=True)


def plan_install(path: Path, form: Format, entry: Mapping[str, Any]) -> Change:
    """The change that adds our entry to a file."""
    before = _read(path)
    return Change(path, before, _named(path, lambda: form.add(before or "", entry)))


def plan_undo(path: Path, form: Format) -> Change:
    """The change that takes our entry out of a file.

    If the file was not changed since the entry was added, it becomes exactly what it was before, or is
    removed if there was none. Otherwise only the entry is taken out.
    """
    before = _read(path)
    if before is None:
        return Change(path, None, None, is_undo=True)
    after = _named(path, lambda: form.remove(before))
    if after == before:
        return Change(path, before, before, is_undo=True)
    original = _read(_backup_of(path))
    entry = form.entry_of(before)
    if original is not None and form.add(original, entry) == before:
        return Change(path, before, original, is_undo=True)
    is_ours = original is None and form.add("", entry) == before
    return Change(path, before, None if is_ours else after, is_undo=True)


def _count_equal(one: str, other: str) -> int:
    """The number of equal characters at the start of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + _BACKUP)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigurationFileError(f"{path} is not UTF-8; it was left as it is") from None


def _named(path: Path, change: Any) -> str:
    """The result of a change, whose error gets the name of the file."""
    try:
        return str(change())
    except ConfigurationFileError as error:
        raise ConfigurationFileError(f"{path} {error}; it was left as it is") from None


def _mode_of(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return _NEW_MODE


def _write(path: Path, text: str, mode: int) -> None:
    with replace_privately(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
        os.chmod(temporary, mode)
