"""Files and folders in memory, and the changes that make them. Pure.

A path has no leading slash, and the root is the empty path. Changes are plain JSON, so that they can be
stored. Applying all changes in their order gives the files.
"""

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Change = dict[str, Any]
_ROOT = "/memories"


class Entry(NamedTuple):
    """A file or a folder in a listing. The size of a folder is that of an empty one on a disk."""

    path: str
    size: int
    is_folder: bool


def resolve(path: str) -> str | None:
    """The path below the root that a path of the tool names; `None` if it is outside.

    A path is only compared as text: nothing on the disk is touched, and there are no links to follow.
    """
    inner = path[len(_ROOT) :].lstrip("/")
    found = posixpath.normpath(posixpath.join(_ROOT, inner))
    if found != _ROOT and not found.startswith(f"{_ROOT}/"):
        return None
    return found[len(_ROOT) + 1 :]


def parent_of(path: str) -> str:
    """The folder of a path."""
    return posixpath.dirname(path)


@dataclass
class Tree:
    """The files by their paths, in the order in which they were created, and the folders."""

    files: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {""})

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        return path in self.files or path in self.folders

    def apply(self, changes: Iterable[Change]) -> None:
        """Make changes, as they were stored."""
        for change in changes:
            if "folder" in change:
                self.folders.add(change["folder"])
            elif "text" in change:
                self.files[change["path"]] = change["text"]
            elif "moved_to" in change:
                self._move(change["path"], change["moved_to"])
            else:
                self._remove(change["path"])

    def missing_folders(self, path: str) -> list[str] | None:
        """The folders that a path needs and that are missing, outer ones first; `None` if one is a file."""
        missing = []
        folder = parent_of(path)
        while folder not in self.folders:
            if folder in self.files:
                return None
            missing.append(folder)
            folder = parent_of(folder)
        return missing[::-1]

    def list_folder(self, folder: str, levels: int) -> Iterator[Entry]:
        """What is in a folder, by name, each folder before its contents. Hidden names are left out."""
        inside = [path for path in (*self.files, *self.folders) if path and parent_of(path) == folder]
        for path in sorted(inside, key=posixpath.basename):
            if posixpath.basename(path).startswith("."):
                continue
            text = self.files.get(path)
            yield Entry(path, 4096 if text is None else len(text.encode()), text is None)
            if text is None and levels > 1:
                yield from self.list_folder(path, levels - 1)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(len(text.encode()) for text in self.files.values())

    def _move(self, old: str, new: str) -> None:
        self.files = {_moved(path, old, new): text for path, text in self.files.items()}
        self.folders = {_moved(path, old, new) for path in self.folders}

    def _remove(self, path: str) -> None:
        self.files = {each: text for each, text in self.files.items() if not _is_within(each, path)}
        self.folders = {each for each in self.folders if not each or not _is_within(each, path)}


def _is_within(path: str, folder: str) -> bool:
    return path == folder or not folder or path.startswith(f"{folder}/")


def _moved(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if path and _is_within(path, old) else path
