"""The memory tool: the same answers as the SDK's tool on a disk, all versions, limits, and no way out."""

import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from anthropic import Anthropic
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from recollect import ConversationManager, MemoryStore
from recollect.integrations.anthropic import AsyncMemoryTool, MemoryTool
from recollect.integrations.anthropic.commands import Limits, run
from recollect.integrations.anthropic.tree import Tree
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, ToolCall


def command(name: str, **fields: Any) -> Any:
    """A command, as the SDK gives it to a tool."""
    return SimpleNamespace(command=name, **({"view_range": None} if name == "view" else {}), **fields)


class Notes:
    """Files, one for each text."""

    def __init__(self, tool: AsyncMemoryTool) -> None:
        self.tool = tool

    async def add(self, records: Sequence[Any]) -> None:
        for text in records:
            name = sha256(text.encode()).hexdigest()
            await self.tool.create(command("create", path=f"/memories/{name}", file_text=text))

    async def records(self) -> list[Any]:
        return list((await self.tool.read_files()).values())

    async def aclose(self) -> None:
        await self.tool.aclose()


class TestMemoryTool(AdapterContract):
    batch = 1
    records_messages = False

    async def open(self, url: str, name: str, **options: Any) -> Notes:
        return Notes(AsyncMemoryTool(url, agent_id=name, create_tables=True, **options))

    def record(self, text: str) -> Any:
        return text

    def text_of(self, record: Any) -> str:
        return str(record)


# --- the page about the user ---

PAGE = "/memories/about_the_user.md"


@in_event_loop
async def test_the_page_about_the_user_is_a_file_that_cannot_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    async with MemoryStore(path, embedder=None, workers=0) as store:
        tool = AsyncMemoryTool(path, user_id="ada", store=store)
        assert PAGE not in await tool.view(command("view", path="/memories"))
        await store.add_entry("claude", "ada", "profile", "The user lives in Lisbon.")
        await store.add_entry("claude", "bo", "profile", "The user lives in Oslo.")
        assert PAGE in await tool.view(command("view", path="/memories"))
        shown = await tool.view(command("view", path=PAGE))
        assert "> - The user lives in Lisbon." in shown
        assert "Oslo" not in shown
        for refused in (
            command("create", path=PAGE, file_text="mine"),
            command("str_replace", path=f"/memories/x/..{PAGE[9:]}", old_str="Lisbon", new_str="Oslo"),
            command("insert", path=PAGE, insert_line=0, insert_text="mine"),
            command("delete", path=PAGE),
            command("rename", old_path=PAGE, new_path="/memories/mine.md"),
            command("create", path=f"{PAGE}/inner.md", file_text="mine"),
        ):
            with pytest.raises(ToolError, match="is read-only"):
                await tool.execute(refused)
        await tool.create(command("create", path="/memories/mine.md", file_text="tea"))
        with pytest.raises(ToolError, match="is read-only"):
            await tool.rename(command("rename", old_path="/memories/mine.md", new_path=PAGE))
        assert await tool.read_files() == {"/memories/mine.md": "tea"}
        await store.add_entry("claude", "ada", "mind", "The user likes tea.")
        assert "The user likes tea." in await tool.view(command("view", path=PAGE))
        await tool.aclose()


@in_event_loop
async def test_without_a_store_the_name_of_the_page_is_free(tmp_path: Path) -> None:
    tool = AsyncMemoryTool(tmp_path / "agents.db", user_id="ada")
    await tool.create(command("create", path=PAGE, file_text="mine"))
    assert await tool.read_files() == {PAGE: "mine"}
    await tool.aclose()


def test_the_synchronous_tool_shows_the_page(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with ConversationManager(path, embedder=None, workers=0) as manager:
        manager.add_entry("claude", "ada", "profile", "The user lives in Lisbon.")
        tool = MemoryTool(path, user_id="ada", store=manager.store)
        assert "The user lives in Lisbon." in tool.view(command("view", path=PAGE))
        tool.close()


# --- the tool of the SDK as the oracle ---

NAMES = ("a", "b.txt", ".hidden", "c d", "é", "memories")
TEXTS = ("", "one", "one\ntwo\n", "x\n\nx", "\n", "a\r\nb", "long " * 300, "你好\n" * 4)


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder that needs no disk, if there is one: the SDK waits for the disk after each write."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    yield folder
    shutil.rmtree(folder)


def some_path(chance: random.Random) -> str:
    """A path; now and then a strange one, or one that leads out."""
    path = "/memories" + "".join(f"/{chance.choice(NAMES)}" for _ in range(chance.choice((1, 1, 1, 2, 2, 3))))
    odd = (
        "/memories",
        "/memories/",
        "/memories//a",
        "/memories/./a",
        f"{path}/",
        f"{path}/../{chance.choice(NAMES)}",
        "/memories/../etc/passwd",
        "/memories/a/../../..",
        "/memories/../memories/a",
        "/memoriesa",
        "/etc/passwd",
        "",
        "memories/a",
    )
    return chance.choice(odd) if chance.random() < 0.15 else path


def some_command(chance: random.Random) -> Any:
    """A command. Paths and texts are few, so that commands meet."""
    name = chance.choice(("view", "view", "create", "create", "str_replace", "insert", "delete", "rename"))
    path = some_path(chance)
    if name == "view":
        ranges: Any = (None, None, [1, 2], [0, -1], [2, 1], [5, 9], [-3, -2], [1])
        return SimpleNamespace(command=name, path=path, view_range=chance.choice(ranges))
    if name == "create":
        return command(name, path=path, file_text=chance.choice(TEXTS))
    if name == "str_replace":
        old = chance.choice(("one", "x", "", "\n", "two\n", "好", "nothing"))
        return command(name, path=path, old_str=old, new_str=chance.choice(TEXTS[:6]))
    if name == "insert":
        return command(
            name, path=path, insert_line=chance.randrange(-1, 6), insert_text=chance.choice(TEXTS[:6])
        )
    if name == "delete":
        return command(name, path=path)
    return command(name, old_path=path, new_path=some_path(chance))


def ask(tool: Any, asked: Any) -> tuple[str, str]:
    """What a tool answers. Where the SDK's tool does not handle an error of the disk, any error will do."""
    try:
        return "answer", without_sizes_of_folders(tool.execute(asked), asked)
    except ToolError as error:
        return "error", str(error.content)
    except OSError:
        return "error", ""


def without_sizes_of_folders(answer: str, asked: Any) -> str:
    """The size of a folder depends on the disk."""
    if asked.command != "view" or not answer.startswith("Here're"):
        return answer
    head, own, *lines = answer.split("\n")
    return "\n".join([head, own.split("\t")[1], *(re.sub(r"^\S+(?=\t.*/$)", "", line) for line in lines)])


class TreeTool:
    """The commands without a database."""

    def __init__(self) -> None:
        self.tree = Tree()

    def execute(self, asked: Any) -> str:
        outcome = run(self.tree, asked, Limits())
        self.tree.apply(outcome.changes)
        if outcome.is_error:
            raise ToolError(outcome.answer)
        return outcome.answer


def compare(oracle: Any, tool: Any, chance: random.Random, steps: int) -> int:
    """Give both the same commands, and compare; returns how many answers were no errors."""
    good = 0
    for _ in range(steps):
        asked = some_command(chance)
        theirs, ours = ask(oracle, asked), ask(tool, asked)
        assert theirs[0] == ours[0], asked
        assert theirs[1] in ("", ours[1]), asked
        good += ours[0] == "answer"
    return good


def compare_trees(disk: Path, seeds: range) -> None:
    good = 0
    oracle = BetaLocalFilesystemMemoryTool(str(disk))
    for seed in seeds:
        oracle.clear_all_memory()
        good += compare(oracle, TreeTool(), random.Random(seed), steps=14)
    assert good > len(seeds) * 3, "most sequences do something"


def test_the_same_answers_as_on_a_disk(disk: Path) -> None:
    compare_trees(disk, range(500))


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_the_same_answers_as_on_a_disk_for_thousands_of_sequences(disk: Path) -> None:
    compare_trees(disk, range(10_000, 13_000))


def test_the_same_answers_from_a_database(disk: Path, adapter_url: str) -> None:
    tool = MemoryTool(adapter_url, user_id=str(uuid4()), create_tables=True)
    oracle = BetaLocalFilesystemMemoryTool(str(disk))
    for seed in range(4):
        assert tool.clear_all_memory() == oracle.clear_all_memory()
        compare(oracle, tool, random.Random(seed), steps=20)
    tool.close()


# --- more than a disk ---


def test_every_version_of_a_file_is_kept(tmp_path: Path) -> None:
    tool = MemoryTool(tmp_path / "files.db", user_id="ada")
    path = "/memories/likes.md"
    tool.execute(command("create", path=path, file_text="tea"))
    tool.execute(command("str_replace", path=path, old_str="tea", new_str="coffee"))
    with pytest.raises(ToolError):
        tool.execute(command("str_replace", path=path, old_str="tea", new_str="milk"))
    tool.execute(command("rename", old_path=path, new_path="/memories/old.md"))
    assert tool.read_files() == {"/memories/old.md": "coffee"}
    tool.clear_all_memory()
    assert [each.text for each in tool.history(path)] == ["tea", "coffee", None]
    assert [(each.command, each.text) for each in tool.history("/memories/old.md")] == [
        ("rename", "coffee"),
        ("clear_all_memory", None),
    ]
    assert tool.read_files() == {}
    tool.close()


def test_limits(tmp_path: Path) -> None:
    options = {"max_file_bytes": 10, "max_total_bytes": 25, "max_files": 3}
    tool = MemoryTool(tmp_path / "files.db", user_id="ada", **options)
    with pytest.raises(ToolError, match="larger than 10 bytes"):
        tool.execute(command("create", path="/memories/a", file_text="你好你好"))
    for name in "ab":
        tool.execute(command("create", path=f"/memories/{name}", file_text="0123456789"))
    with pytest.raises(ToolError, match="together"):
        tool.execute(command("create", path="/memories/c", file_text="012345"))
    with pytest.raises(ToolError, match="larger than 10 bytes"):
        tool.execute(command("insert", path="/memories/a", insert_line=0, insert_text="x"))
    tool.execute(command("create", path="/memories/c", file_text=""))
    with pytest.raises(ToolError, match="more than 3 files"):
        tool.execute(command("create", path="/memories/d", file_text=""))
    assert tool.execute(command("view", path="/memories")).count("\t/memories/") == 3
    tool.close()


BAD_COMMANDS = [
    command("view", path="/memories/../../etc/passwd"),
    command("view", path="/memories/%2e%2e/x"),
    command("create", path="/memories/nul\0", file_text=""),
    command("create", path=f"/memories/{'n' * 256}", file_text=""),
    command("create", path="/memories/half", file_text="\ud83d"),
    command("create", path="/memories/a"),
    command("insert", path="/memories/a", insert_line="1", insert_text=""),
    command("format", path="/memories/a"),
    SimpleNamespace(command="view", path="/memories", view_range=["1", 2]),
    SimpleNamespace(),
]


@pytest.mark.parametrize("bad", BAD_COMMANDS, ids=range(len(BAD_COMMANDS)))
def test_a_bad_command_is_an_error_that_the_model_sees(tmp_path: Path, bad: Any) -> None:
    tool = MemoryTool(tmp_path / "files.db", user_id="ada")
    with pytest.raises(ToolError):
        tool.execute(bad)
    assert tool.read_files() == {}
    tool.close()


@in_event_loop
async def test_the_tool_is_described_to_the_model_as_that_of_the_sdk(tmp_path: Path) -> None:
    tool = AsyncMemoryTool(tmp_path / "files.db", user_id="ada")
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    made = await tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
    assert made == "File created successfully at: /memories/a"
    await tool.aclose()


def test_a_model_uses_the_tool_over_http(tmp_path: Path, server: ProviderServer) -> None:
    """Through the client and the tool runner of the SDK; an error is an answer that the model sees."""
    tool = MemoryTool(tmp_path / "files.db", user_id="ada")
    made = {"command": "create", "path": "/memories/a", "file_text": "tea"}
    server.messages.reply(ToolCall("memory", made), ToolCall("memory", made), "Done.")
    client = Anthropic(base_url=server.root_url, api_key=server.api_key)
    asked: Any = [{"role": "user", "content": "I like tea."}]
    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-5-5", max_tokens=100, messages=asked, tools=[tool], thread=False
    )
    last = runner.until_done()
    client.close()
    assert "Done." in str(last.content)
    sent = str(server.requests()[-1].body["messages"])
    assert "File created successfully at: /memories/a" in sent
    assert "File /memories/a already exists" in sent
    assert tool.read_files() == {"/memories/a": "tea"}
    tool.close()
