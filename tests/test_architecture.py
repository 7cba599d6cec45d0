"""The architecture: which package may import which, the public names, and cheap imports."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import recollect

SOURCE = Path(recollect.__file__).parent

# A module imports only from its own package and from those before it in this list, so there are no cycles.
LAYERS = (
    "errors",
    "extras",
    "private_files",
    "text_checks",
    "ids",
    "cursors",
    "cancellation",
    "event_loops",
    "threads",
    "items",
    "sql",
    "models",
    "service_client",
    "sessions",
    "strategies",
    "memory",
    "integrations",
    "extensions",
    "moving",
    "capture",
    "providers",
    "server",
    "migrations",
    "mcp",
    "testing",
    "cli",
    "__main__",
)
RANK = {package: rank for rank, package in enumerate(LAYERS)}
# Names whose modules may load packages of an extra.
OF_EXTRAS = {
    "AdvancedSQLAlchemySession",
    "EncryptedSession",
    "OpenAIAgentProvider",
    "OpenAIConversationsSession",
    "OpenAISQLAlchemySessionStore",
    "RedisSession",
    "SQLAlchemySession",
    "build_memory_strategy_config",
    "build_openai_provider",
    "prepare_run_context",
    "start_openai_conversations_session",
}
HEAVY = {
    *("agents", "openai", "anthropic", "sqlalchemy", "alembic", "redis", "fastapi", "cryptography"),
    *("langchain_core", "langgraph"),
}


def modules() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def imported_packages(path: Path) -> set[str]:
    """The packages of Recollect that a module imports, at the top or inside functions."""
    inside = path.relative_to(SOURCE).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = inside[: len(inside) - node.level + 1]
            names = [*base, *(node.module or "").split(".")] if node.module else list(base)
            found.update([names[0]] if names else [alias.name for alias in node.names])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recollect."):
            found.add((node.module or "").split(".")[1])
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_the_layers_above_it(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert own in RANK, f"{own} has no place in the layers"
    for package in imported_packages(path):
        assert RANK[package] <= RANK[own], f"{own} must not import {package}"


def test_items_and_errors_import_nothing_of_ours_but_each_other() -> None:
    for path in (SOURCE / "items").glob("*.py"):
        assert imported_packages(path) <= {"items", "errors"}
    assert imported_packages(SOURCE / "errors.py") == set()


def test_what_checks_arguments_says_so_by_its_error() -> None:
    """The service answers these errors with 422, and any other `ValueError` or `TypeError` with 500."""
    values = [SOURCE / "memory" / f"{name}.py" for name in ("conversation", "entry", "memory", "times")]
    bare = [
        f"{path.name}:{node.lineno}"
        for path in (*values, *(SOURCE / "memory" / "store").glob("*.py"), SOURCE / "sql/columns.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and getattr(node.exc.func, "id", "") in ("ValueError", "TypeError")
    ]
    assert bare == [], "raise InvalidValueError or InvalidTypeError"


def test_the_public_surface_is_this_list() -> None:
    assert recollect.__all__ == sorted(
        """
        AnthropicSummarizer Compact EncryptedSession ExtractiveSummarizer OpenAISummarizer Strategy
        StoredSummary StrategyEvent StrategySession Summarize Summarizer Summary SummaryFailedError
        ConversationEvent ConversationSummary ConversationSummaryStore EventLog SummaryRequest
        build_injected_instructions event_of inject_memory project_new_session_items ModelUsage Trim
        WrongKeyError resolve_memory_injection resolve_memory_strategy
        strategy_from_config strategy_input_filter strategy_to_config view_of
        AdvancedSQLAlchemySession AdvancedSQLiteSession AsyncSQLiteSession BranchDiff Note Noted PopsChecked
        OpenAIAgentProvider OpenAISQLAlchemySessionStore build_memory_strategy_config build_openai_provider
        prepare_run_context UserTurn HistoryCounts HistoryLostError ItemCount RemovedItems
        RemoteMemoryStore RemoteSession
        ConversationNotCreatedError OpenAIConversationsSession PartialBatchError RedisSession
        SQLAlchemySession open_session start_openai_conversations_session
        AccessDeniedError AppendsOnce ConnectionLostError MissingTablesError UnreachableError
        DatabaseBusyError Described DiskFullError ImportFormatError ImportReport
        InMemorySession InvalidItemError Item Leasable MissingAbilityError MissingExtraError
        MissingExtensionError
        FileReplacedError NotADatabaseError Pairs Positioned PositionedItem ReadOnlyError RecollectError
        RepairReport RetryingSession Rewritable RunLockTimeoutError SQLiteSession
        SchemaMismatchError Session SessionABC SessionClosedError SessionInfo
        SessionInputCallback SessionManager SessionMetadata SessionPage SessionSettings
        StatementRefusedError StorageError TransactionConflictError TransientError
        chain_callbacks compress_history drop_sensitive
        estimate_tokens export_session find_orphans fingerprint import_sdk_sessions
        import_session is_user_message items_to_messages limit_history mask_sensitive
        newest_whole pair_calls repair reset_session run_lock split_turns summarize_head text_of
        undo_items undo_turn ScanLimitError TResponseInputItem
        AnthropicExtractor ConflictError Conversation ConversationManager Coverage EmbeddingError Entry
        Evidence ExtractionError Extractor LeaseLostError Memory MemoryStore Message ModelRefusedError
        ModelUnavailableError OfflineExtractor OpenAIExtractor Run RunFailure RunOptions RunStage
        UnusableAnswerError
        ConversationSettings MemoryOutline TokenMeter UNCHANGED UserOutline
        CachedEmbedder CallableEmbedder Embedder LocalEmbedder MemoryHit MemorySearch OnnxEmbedder
        OpenAIEmbedder PageChanges PageLine PromptMemory PromptOptions PromptOwner PromptParts
        Recalled Receipt TurnHit TurnSearch UserPage Why
        """.split()  # noqa: SIM905
    )
    for name in recollect.__all__:
        assert getattr(recollect, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = recollect.no_such_name


def test_type_checkers_see_every_public_name() -> None:
    """Type checkers cannot follow lazy loading, so the names are also imported for them."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    seen = {
        alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen - {None} == set(recollect.__all__)


def modules_loaded_by(statement: str) -> set[str]:
    script = f"import sys; {statement}; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_importing_recollect_loads_nothing_else() -> None:
    loaded = modules_loaded_by("import recollect")
    assert {name for name in loaded if name.startswith("recollect")} == {"recollect"}
    assert not loaded & {"sqlite3", "asyncio", "msgspec", "typing"}


def test_the_base_needs_no_extra() -> None:
    names = [name for name in recollect.__all__ if name not in OF_EXTRAS]
    loaded = modules_loaded_by(f"import recollect; [getattr(recollect, name) for name in {names}]")
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    ("extra", "packages", "use"),
    [
        ("postgres", ["sqlalchemy"], "SQLAlchemySession.from_url('s', url='postgresql://127.0.0.1/x')"),
        ("redis", ["redis"], "RedisSession.from_url('s', url='redis://127.0.0.1')"),
        ("openai", ["openai", "agents"], "OpenAIConversationsSession()"),
        ("agents", ["agents"], "build_openai_provider('chats.db')"),
    ],
)
def test_a_class_whose_extra_is_missing_says_so(extra: str, packages: list[str], use: str) -> None:
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({packages}))\n"  # Python then finds none of them
        "import recollect\n"
        f"try: recollect.{use}\n"
        "except recollect.MissingExtraError as error: print(error)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"pip install 'recollect-memory[{extra}]'" in ended.stdout


@pytest.mark.parametrize(
    ("extra", "package", "name"),
    [
        ("langgraph", "langgraph.checkpoint.base", "langgraph.Checkpointer"),
        ("langgraph", "langgraph.checkpoint.base", "langgraph.Store"),
        ("langchain", "langchain_core.messages", "langchain.ChatHistory"),
        ("claude-agent-sdk", "claude_agent_sdk", "claude_agent_sdk.TranscriptStore"),
        ("anthropic", "anthropic.tools.memory", "anthropic.MemoryTool"),
        ("pydantic-ai", "pydantic_ai", "pydantic_ai.Conversations"),
        ("llama-index", "llama_index.core", "llama_index.ChatStore"),
        ("adk", "google.adk", "adk.SessionService"),
        ("agent-framework", "agent_framework", "agent_framework.SessionHistory"),
        ("strands", "strands.session", "strands.Repository"),
        ("crewai", "crewai.memory", "crewai.MemoryStorage"),
    ],
)
def test_an_integration_whose_extra_is_missing_says_so(extra: str, package: str, name: str) -> None:
    module, _, what = name.partition(".")
    script = (
        f"import sys; sys.modules['{package}'] = None\n"
        f"import recollect.integrations.{module} as module\n"  # which imports nothing yet
        f"try: module.{what}\n"
        "except ImportError as error: print(error)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"pip install 'recollect-memory[{extra}]'" in ended.stdout


def test_an_integration_needs_no_extra_but_its_own() -> None:
    script = (
        "import sys; sys.modules['cryptography'] = sys.modules['pytest'] = None\n"
        "import recollect.integrations.framework\n"
        "import recollect.testing.providers, recollect.testing.servers.service"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_missing_extra_is_named() -> None:
    """The demo needs the SDK. In a process without it, the error names the extra."""
    script = (
        "import sys; sys.modules['agents'] = None\n"  # Python then finds none of them
        "from recollect.cli import main\n"
        "sys.exit(main(['demo']))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "pip install 'recollect-memory[agents]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_server_extra_brings_what_the_service_imports() -> None:
    project = tomllib.loads((SOURCE.parent.parent / "pyproject.toml").read_text())["project"]
    brought = " ".join(project["optional-dependencies"]["server"]).replace("openai-agents", "openai agents")
    loaded = modules_loaded_by("import recollect.server.app, recollect.providers.openai")
    assert {package for package in HEAVY & loaded if package not in brought} == set()
