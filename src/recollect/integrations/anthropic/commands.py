"""The commands of the memory tool over a tree of files. Pure: a command gives an answer and changes.

The answers are those of the SDK's tool on a disk, so that a model finds what it was trained on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .tree import Change, Tree, parent_of, resolve

_MOST_LINES = 999_999
_WIDTH = len(str(_MOST_LINES))
_LONGEST_NAME = 255  # bytes, as on a disk
_UNITS = ("B", "K", "M", "G")
_FIELDS: dict[str, dict[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


@dataclass(frozen=True)
class Limits:
    """How much one user may store."""

    file_bytes: int = 1_000_000
    total_bytes: int = 10_000_000
    files: int = 1_000


@dataclass(frozen=True)
class Outcome:
    """The answer to a command, or an error, and what to store."""

    answer: str
    is_error: bool = False
    changes: Sequence[Change] = ()


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    """A command that cannot be carried out. Folders that it has made stay."""

    def __init__(self, message: str, changes: Sequence[Change] = ()) -> None:
        super().__init__(message)
        self.changes = changes


def run(tree: Tree, command: Any, limits: Limits, read_only: str | None = None) -> Outcome:
    """Carry out a command of the model. The tree stays as it is, and so does the file `read_only`."""
    try:
        _check_fields(command)
        _check_writable(command, read_only)
        outcome = _COMMANDS[command.command](tree, command)
        _check_limits(tree, outcome.changes, limits)
        return outcome
    except _Refused as refused:
        return Outcome(str(refused), is_error=True, changes=refused.changes)


def _check_fields(command: Any) -> None:
    """Refuse a command that lacks a field. The SDK does not check what a model has written."""
    fields = _FIELDS.get(str(getattr(command, "command", None)))
    if fields is None:
        raise _Refused(f"Unknown command. The commands are: {', '.join(_FIELDS)}")
    for name, kind in fields.items():
        if not isinstance(getattr(command, name, None), kind):
            raise _Refused(f"The command needs the field {name}, of the type {kind.__name__}")
    lines = getattr(command, "view_range", None)
    if lines is not None and not (isinstance(lines, list) and all(isinstance(each, int) for each in lines)):
        raise _Refused("view_range must be a list of two line numbers")


def _check_writable(command: Any, read_only: str | None) -> None:
    """Refuse a change of the file that is only shown."""
    if command.command == "view" or read_only is None:
        return
    for name in ("path", "old_path", "new_path"):
        path = resolve(str(getattr(command, name, "")))
        if path is not None and f"{path}/".startswith(f"{read_only}/"):
            raise _Refused(f"The file /memories/{read_only} is read-only: it shows what memory knows")


def _check_limits(tree: Tree, changes: Sequence[Change], limits: Limits) -> None:
    written = {change["path"]: len(change["text"].encode()) for change in changes if "text" in change}
    before = sum(len(tree.files[path].encode()) for path in written if path in tree.files)
    if any(size > limits.file_bytes for size in written.values()):
        raise _Refused(f"A file must not be larger than {limits.file_bytes} bytes")
    if written and tree.size - before + sum(written.values()) > limits.total_bytes:
        raise _Refused(f"All files together must not be larger than {limits.total_bytes} bytes")
    new = [path for path in written if path not in tree.files]
    if new and len(tree.files) + len(new) > limits.files:
        raise _Refused(f"There must not be more than {limits.files} files")


# --- the commands ---


def _view(tree: Tree, command: Any) -> Outcome:
    shown, path = command.path, _existing(tree, command.path)
    if path in tree.folders:
        head = f"Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:"
        start = len(path) + 1 if path else 0
        lines = [
            f"{_size(entry.size)}\t{shown}/{entry.path[start:]}{'/' if entry.is_folder else ''}"
            for entry in tree.list_folder(path, levels=2)
        ]
        return Outcome("\n".join([head, f"{_size(4096)}\t{shown}", *lines]))
    lines = tree.files[path].split("\n")
    if len(lines) > _MOST_LINES:
        raise _Refused(f"File {shown} exceeds maximum line limit of 999,999 lines.")
    first, last = 0, len(lines)
    if command.view_range and len(command.view_range) == 2:
        first = max(1, command.view_range[0]) - 1
        last = last if command.view_range[1] == -1 else command.view_range[1]
    numbered = _numbered(lines[first:last], first + 1)
    return Outcome(f"Here's the content of {shown} with line numbers:\n{numbered}")


def _create(tree: Tree, command: Any) -> Outcome:
    path = _path(command.path)
    folders = _folders_for(tree, command.path, path)
    if tree.exists(path):
        raise _Refused(f"File {command.path} already exists")
    written = {"path": path, "text": _text(command.file_text)}
    return Outcome(f"File created successfully at: {command.path}", changes=[*folders, written])


def _str_replace(tree: Tree, command: Any) -> Outcome:
    path = _file(tree, command.path)
    text, old = tree.files[path], command.old_str
    count = text.count(old)
    if count == 0:
        raise _Refused(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
        )
    if count > 1:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in _places(text, old))
        raise _Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
            " Please ensure it is unique"
        )
    changed = text.count("\n", 0, text.find(old))
    new = text.replace(old, _text(command.new_str))
    first = max(0, changed - 2)
    snippet = _numbered(new.split("\n")[first : changed + 3], first + 1)
    answer = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return Outcome(f"{answer}\n{snippet}", changes=[{"path": path, "text": new}])


def _insert(tree: Tree, command: Any) -> Outcome:
    path = _file(tree, command.path)
    lines = tree.files[path].split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= command.insert_line <= len(lines):
        raise _Refused(
            f"Invalid `insert_line` parameter: {command.insert_line}."
            f" It should be within the range [0, {len(lines)}]."
        )
    lines.insert(command.insert_line, _text(command.insert_text).rstrip("\n"))
    text = "\n".join(lines)
    text = text if text.endswith("\n") else f"{text}\n"
    return Outcome(f"The file {command.path} has been edited.", changes=[{"path": path, "text": text}])


def _delete(tree: Tree, command: Any) -> Outcome:
    path = _path(command.path)
    if not path:
        raise _Refused("Cannot delete the /memories directory itself")
    if not tree.exists(path):
        raise _Refused(f"The path {command.path} does not exist")
    return Outcome(f"Successfully deleted {command.path}", changes=[{"path": path, "removed": True}])


def _rename(tree: Tree, command: Any) -> Outcome:
    old, new = _path(command.old_path), _path(command.new_path)
    if not old:
        raise _Refused("Cannot rename the /memories directory itself")
    if tree.exists(new):
        raise _Refused(f"The destination {command.new_path} already exists")
    is_missing = _Refused(f"The path {command.old_path} does not exist")
    if parent_of(new) in tree.files and not tree.exists(old):
        raise is_missing
    folders = is_missing.changes = _folders_for(tree, command.new_path, new)
    if not tree.exists(old):
        raise is_missing
    if new.startswith(f"{old}/"):
        raise _Refused(f"The directory {command.old_path} cannot be moved into itself", folders)
    answer = f"Successfully renamed {command.old_path} to {command.new_path}"
    return Outcome(answer, changes=[*folders, {"path": old, "moved_to": new}])


_COMMANDS: dict[str, Callable[[Tree, Any], Outcome]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}


# --- paths and texts ---


def _path(given: str) -> str:
    if not given.startswith("/memories"):
        raise _Refused(f"Path must start with /memories, got: {given}")
    found = resolve(given)
    if found is None:
        raise _Refused(f"Path {given} would escape /memories directory")
    if "\0" in found or any(len(_text(name).encode()) > _LONGEST_NAME for name in found.split("/")):
        raise _Refused("A name in the path is too long, or has a character that is not allowed")
    return found


def _existing(tree: Tree, given: str) -> str:
    path = _path(given)
    if not tree.exists(path):
        raise _Refused(f"The path {given} does not exist. Please provide a valid path.")
    return path


def _file(tree: Tree, given: str) -> str:
    path = _existing(tree, given)
    if path not in tree.files:
        raise _Refused(f"The path {given} is not a file.")
    return path


def _folders_for(tree: Tree, given: str, path: str) -> list[Change]:
    missing = tree.missing_folders(path) if path else []
    if missing is None:
        raise _Refused(f"A part of the path {given} is a file, not a directory")
    return [{"folder": folder} for folder in missing]


def _text(given: str) -> str:
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise _Refused("The text has half of a character, which cannot be stored") from error
    return given


def _places(text: str, part: str) -> list[int]:
    """Where a part begins; places may overlap."""
    return [place for place in range(len(text) + 1) if text.startswith(part, place)]


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _size(count: int) -> str:
    """A number of bytes as `ls -h` shows it."""
    power = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    value = count / 1024**power
    return f"{int(value)}{_UNITS[power]}" if value == int(value) else f"{value:.1f}{_UNITS[power]}"


def clear(tree: Tree) -> Outcome:
    """Remove everything."""
    outer = [path for path in (*tree.files, *tree.folders) if path and not parent_of(path)]
    return Outcome("All memory cleared", changes=[{"path": path, "removed": True} for path in outer])
