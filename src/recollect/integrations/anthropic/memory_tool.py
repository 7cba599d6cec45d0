"""The memory tool of Anthropic's SDK: files of a user in a database, with every version."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from ...errors import InvalidValueError
from ...items.originals import Original
from ...memory.store import MemoryStore
from ..blocking import run_blocking
from ..framework import Framework, FrameworkSessions
from .commands import Limits, Outcome, clear, run
from .tree import Tree, resolve

PAGE = "about_the_user.md"
"""The file that shows the page about the user."""
_FILES = Framework("anthropic-memory-tool", lambda _: [])


@dataclass(frozen=True)
class FileVersion:
    """A file as it was after a command; `None` as its text if the command removed it."""

    command: str
    text: str | None = field(repr=False)
    changed_at: datetime


@dataclass(frozen=True)
class _Page:
    """The page about the user in long-term memory, which the model sees as a file."""

    store: MemoryStore
    agent_id: str
    user_id: str

    async def show_in(self, tree: Tree) -> None:
        """Put the page among the files, in place of a file with its name. An empty page is no file."""
        page = await self.store.page(self.agent_id, self.user_id)
        tree.apply([{"path": PAGE}])
        if page.prompt:
            tree.apply([{"path": PAGE, "text": page.prompt}])


class _Files:
    """The files of one user. A session has a record for each command that changed something."""

    def __init__(self, sessions: FrameworkSessions, limits: Limits, page: "_Page | None" = None) -> None:
        self._sessions = sessions
        self._limits = limits
        self._page = page

    async def run(self, command: Any) -> str:
        name = str(getattr(command, "command", None))
        if name == "view":
            async with self._sessions.open("files") as log:
                tree = _tree(await log.load())
            if self._page is not None:
                await self._page.show_in(tree)
            return _answer(run(tree, command, self._limits))
        read_only = None if self._page is None else PAGE
        return await self.change(name, lambda tree: run(tree, command, self._limits, read_only))

    async def change(self, name: str, decide: Callable[[Tree], Outcome]) -> str:
        """Decide on the current files and store the changes, in one transaction, which may run again."""
        outcome = Outcome("")

        def with_changes(records: list[Original]) -> list[Original]:
            nonlocal outcome
            outcome = decide(_tree(records))
            new = {"command": name, "at": datetime.now(UTC).isoformat(), "changes": list(outcome.changes)}
            return [*records, new] if outcome.changes else records

        async with self._sessions.open("files") as log:
            await log.change(with_changes)
        return _answer(outcome)

    async def read(self) -> dict[str, str]:
        async with self._sessions.open("files") as log:
            return {f"/memories/{path}": text for path, text in _tree(await log.load()).files.items()}

    async def history(self, path: str) -> list[FileVersion]:
        name = resolve(path) if path.startswith("/memories") else None
        if name is None:
            raise InvalidValueError("path must be below /memories")
        versions: list[FileVersion] = []
        tree, last = Tree(), None
        async with self._sessions.open("files") as log:
            for record in await log.load():
                tree.apply(record["changes"])
                if tree.files.get(name) != last:
                    last = tree.files.get(name)
                    versions.append(
                        FileVersion(record["command"], last, datetime.fromisoformat(record["at"]))
                    )
        return versions

    async def aclose(self) -> None:
        await self._sessions.aclose()


def _tree(records: Iterable[Original]) -> Tree:
    tree = Tree()
    for record in records:
        tree.apply(record["changes"])
    return tree


def _answer(outcome: Outcome) -> str:
    if outcome.is_error:
        raise ToolError(outcome.answer)
    return outcome.answer


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`: the files of one user, with all their versions.

    The answers are those of the SDK's tool on a disk. Each command is one transaction. Files count against
    the limits; their old versions do not, and are stored until the user is erased. `encryption_key`,
    `create_tables` and the options of `open_session` may be given.

    With a `store`, the model also sees what the store knows about the user, which it cannot change: the page
    of `MemoryStore.page`, as the file `/memories/about_the_user.md`.
    """

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        user_id: str,
        agent_id: str = "claude",
        max_file_bytes: int = Limits.file_bytes,
        max_total_bytes: int = Limits.total_bytes,
        max_files: int = Limits.files,
        store: MemoryStore | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        limits = Limits(max_file_bytes, max_total_bytes, max_files)
        sessions = FrameworkSessions(_FILES, url_or_path, agent_id=agent_id, user_id=user_id, **options)
        self._files = _Files(sessions, limits, None if store is None else _Page(store, agent_id, user_id))

    async def execute(self, command: Any) -> str:
        """Carry out a command. If that is not possible, raise a `ToolError`, which the model sees."""
        return await self._files.run(command)

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        """Remove all files. Their versions stay, until the user is erased."""
        return await self._files.change("clear_all_memory", clear)

    async def read_files(self) -> dict[str, str]:
        """The texts of all files by their paths."""
        return await self._files.read()

    async def history(self, path: str) -> list[FileVersion]:
        """All versions of a file, the oldest first, also of a file that was removed."""
        return await self._files.history(path)

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._files.aclose()


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `Anthropic`. The same as `AsyncMemoryTool`, for synchronous code."""

    def __init__(self, url_or_path: str | Path, *, user_id: str, **options: Any) -> None:
        super().__init__()
        self._tool = AsyncMemoryTool(url_or_path, user_id=user_id, **options)

    def execute(self, command: Any) -> str:
        """Carry out a command. If that is not possible, raise a `ToolError`, which the model sees."""
        return run_blocking(self._tool.execute(command))

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        """Remove all files. Their versions stay, until the user is erased."""
        return run_blocking(self._tool.clear_all_memory())

    def read_files(self) -> dict[str, str]:
        """The texts of all files by their paths."""
        return run_blocking(self._tool.read_files())

    def history(self, path: str) -> list[FileVersion]:
        """All versions of a file, the oldest first, also of a file that was removed."""
        return run_blocking(self._tool.history(path))

    def close(self) -> None:
        """Release the database. May be called more than once."""
        run_blocking(self._tool.aclose())
