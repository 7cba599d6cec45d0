"""Recollect: the memory layer for AI agents.

Everything public is importable from here. A module is loaded when one of its names is first used, so that
`import recollect` is cheap.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers treat it as true; importing `typing` would cost time
if TYPE_CHECKING:
    from .errors import AccessDeniedError as AccessDeniedError
    from .errors import ConflictError as ConflictError
    from .errors import ConnectionLostError as ConnectionLostError
    from .errors import ConversationNotCreatedError as ConversationNotCreatedError
    from .errors import DatabaseBusyError as DatabaseBusyError
    from .errors import DiskFullError as DiskFullError
    from .errors import EmbeddingError as EmbeddingError
    from .errors import ExtractionError as ExtractionError
    from .errors import FileReplacedError as FileReplacedError
    from .errors import HistoryLostError as HistoryLostError
    from .errors import ImportFormatError as ImportFormatError
    from .errors import InvalidItemError as InvalidItemError
    from .errors import LeaseLostError as LeaseLostError
    from .errors import MissingAbilityError as MissingAbilityError
    from .errors import MissingExtensionError as MissingExtensionError
    from .errors import MissingExtraError as MissingExtraError
    from .errors import MissingTablesError as MissingTablesError
    from .errors import ModelRefusedError as ModelRefusedError
    from .errors import ModelUnavailableError as ModelUnavailableError
    from .errors import NotADatabaseError as NotADatabaseError
    from .errors import PartialBatchError as PartialBatchError
    from .errors import ReadOnlyError as ReadOnlyError
    from .errors import RecollectError as RecollectError
    from .errors import RunLockTimeoutError as RunLockTimeoutError
    from .errors import ScanLimitError as ScanLimitError
    from .errors import SchemaMismatchError as SchemaMismatchError
    from .errors import SessionClosedError as SessionClosedError
    from .errors import StatementRefusedError as StatementRefusedError
    from .errors import StorageError as StorageError
    from .errors import SummaryFailedError as SummaryFailedError
    from .errors import TransactionConflictError as TransactionConflictError
    from .errors import TransientError as TransientError
    from .errors import UnreachableError as UnreachableError
    from .errors import UnusableAnswerError as UnusableAnswerError
    from .errors import WrongKeyError as WrongKeyError
    from .items import Item as Item
    from .items import ModelUsage as ModelUsage
    from .items import Pairs as Pairs
    from .items import estimate_tokens as estimate_tokens
    from .items import find_orphans as find_orphans
    from .items import fingerprint as fingerprint
    from .items import is_user_message as is_user_message
    from .items import newest_whole as newest_whole
    from .items import pair_calls as pair_calls
    from .items import split_turns as split_turns
    from .items import text_of as text_of
    from .memory.conversation import UNCHANGED as UNCHANGED
    from .memory.conversation import Conversation as Conversation
    from .memory.conversation import ConversationSettings as ConversationSettings
    from .memory.conversation import Message as Message
    from .memory.entry import Entry as Entry
    from .memory.entry import Evidence as Evidence
    from .memory.extraction import AnthropicExtractor as AnthropicExtractor
    from .memory.extraction import OpenAIExtractor as OpenAIExtractor
    from .memory.hits import MemoryHit as MemoryHit
    from .memory.hits import MemorySearch as MemorySearch
    from .memory.hits import Recalled as Recalled
    from .memory.hits import TurnHit as TurnHit
    from .memory.hits import TurnSearch as TurnSearch
    from .memory.manager import ConversationManager as ConversationManager
    from .memory.memory import Memory as Memory
    from .memory.memory import MemoryOutline as MemoryOutline
    from .memory.memory import UserOutline as UserOutline
    from .memory.offline import OfflineExtractor as OfflineExtractor
    from .memory.page import PageChanges as PageChanges
    from .memory.page import PageLine as PageLine
    from .memory.page import UserPage as UserPage
    from .memory.pipeline.runner import RunOptions as RunOptions
    from .memory.pipeline.stages import Extractor as Extractor
    from .memory.pipeline.token_meter import TokenMeter as TokenMeter
    from .memory.prompting import PromptMemory as PromptMemory
    from .memory.prompting import PromptOptions as PromptOptions
    from .memory.prompting import PromptOwner as PromptOwner
    from .memory.prompting import PromptParts as PromptParts
    from .memory.remote.store import RemoteMemoryStore as RemoteMemoryStore
    from .memory.rights.receipt import Receipt as Receipt
    from .memory.rights.why import Why as Why
    from .memory.run import Coverage as Coverage
    from .memory.run import Run as Run
    from .memory.run import RunFailure as RunFailure
    from .memory.run import RunStage as RunStage
    from .memory.search.embedders import CachedEmbedder as CachedEmbedder
    from .memory.search.embedders import CallableEmbedder as CallableEmbedder
    from .memory.search.embedders import Embedder as Embedder
    from .memory.search.embedders import LocalEmbedder as LocalEmbedder
    from .memory.search.embedders import OnnxEmbedder as OnnxEmbedder
    from .memory.search.embedders import OpenAIEmbedder as OpenAIEmbedder
    from .memory.store import MemoryStore as MemoryStore
    from .providers.openai.exports import OpenAIAgentProvider as OpenAIAgentProvider
    from .providers.openai.exports import OpenAISQLAlchemySessionStore as OpenAISQLAlchemySessionStore
    from .providers.openai.exports import build_memory_strategy_config as build_memory_strategy_config
    from .providers.openai.exports import build_openai_provider as build_openai_provider
    from .providers.openai.exports import prepare_run_context as prepare_run_context
    from .sessions.advanced.branches import BranchDiff as BranchDiff
    from .sessions.advanced.sqlalchemy import AdvancedSQLAlchemySession as AdvancedSQLAlchemySession
    from .sessions.advanced.sqlite import AdvancedSQLiteSession as AdvancedSQLiteSession
    from .sessions.advanced.turns import UserTurn as UserTurn
    from .sessions.callbacks import chain_callbacks as chain_callbacks
    from .sessions.callbacks import drop_sensitive as drop_sensitive
    from .sessions.callbacks import limit_history as limit_history
    from .sessions.callbacks import mask_sensitive as mask_sensitive
    from .sessions.callbacks import summarize_head as summarize_head
    from .sessions.changes import HistoryCounts as HistoryCounts
    from .sessions.changes import ItemCount as ItemCount
    from .sessions.changes import RemovedItems as RemovedItems
    from .sessions.conversations import OpenAIConversationsSession as OpenAIConversationsSession
    from .sessions.conversations import (
        start_openai_conversations_session as start_openai_conversations_session,
    )
    from .sessions.encryption import EncryptedSession as EncryptedSession
    from .sessions.events import ConversationEvent as ConversationEvent
    from .sessions.events import EventLog as EventLog
    from .sessions.events import event_of as event_of
    from .sessions.events import project_new_session_items as project_new_session_items
    from .sessions.history import RepairReport as RepairReport
    from .sessions.history import compress_history as compress_history
    from .sessions.history import export_session as export_session
    from .sessions.history import import_session as import_session
    from .sessions.history import items_to_messages as items_to_messages
    from .sessions.history import repair as repair
    from .sessions.history import reset_session as reset_session
    from .sessions.history import undo_items as undo_items
    from .sessions.history import undo_turn as undo_turn
    from .sessions.in_memory import InMemorySession as InMemorySession
    from .sessions.manager import SessionManager as SessionManager
    from .sessions.manager import open_session as open_session
    from .sessions.protocol import AppendsOnce as AppendsOnce
    from .sessions.protocol import Described as Described
    from .sessions.protocol import Leasable as Leasable
    from .sessions.protocol import Note as Note
    from .sessions.protocol import Noted as Noted
    from .sessions.protocol import PopsChecked as PopsChecked
    from .sessions.protocol import Positioned as Positioned
    from .sessions.protocol import PositionedItem as PositionedItem
    from .sessions.protocol import Rewritable as Rewritable
    from .sessions.protocol import Session as Session
    from .sessions.protocol import SessionABC as SessionABC
    from .sessions.protocol import SessionInfo as SessionInfo
    from .sessions.protocol import SessionInputCallback as SessionInputCallback
    from .sessions.protocol import SessionMetadata as SessionMetadata
    from .sessions.protocol import SessionPage as SessionPage
    from .sessions.protocol import TResponseInputItem as TResponseInputItem
    from .sessions.redis import RedisSession as RedisSession
    from .sessions.remote import RemoteSession as RemoteSession
    from .sessions.run_lock import run_lock as run_lock
    from .sessions.sdk_import import ImportReport as ImportReport
    from .sessions.sdk_import import import_sdk_sessions as import_sdk_sessions
    from .sessions.settings import SessionSettings as SessionSettings
    from .sessions.sqlalchemy import SQLAlchemySession as SQLAlchemySession
    from .sessions.sqlite import AsyncSQLiteSession as AsyncSQLiteSession
    from .sessions.sqlite import SQLiteSession as SQLiteSession
    from .sessions.wrappers import RetryingSession as RetryingSession
    from .strategies.anchors import StoredSummary as StoredSummary
    from .strategies.configuration import resolve_memory_injection as resolve_memory_injection
    from .strategies.configuration import resolve_memory_strategy as resolve_memory_strategy
    from .strategies.configuration import strategy_from_config as strategy_from_config
    from .strategies.configuration import strategy_to_config as strategy_to_config
    from .strategies.events import StrategyEvent as StrategyEvent
    from .strategies.session import StrategySession as StrategySession
    from .strategies.summaries import ConversationSummary as ConversationSummary
    from .strategies.summaries import ConversationSummaryStore as ConversationSummaryStore
    from .strategies.summaries import build_injected_instructions as build_injected_instructions
    from .strategies.summaries import inject_memory as inject_memory
    from .strategies.summarizers import AnthropicSummarizer as AnthropicSummarizer
    from .strategies.summarizers import ExtractiveSummarizer as ExtractiveSummarizer
    from .strategies.summarizers import OpenAISummarizer as OpenAISummarizer
    from .strategies.summarizers import Summarizer as Summarizer
    from .strategies.summarizers import Summary as Summary
    from .strategies.summarizers import SummaryRequest as SummaryRequest
    from .strategies.values import Compact as Compact
    from .strategies.values import Strategy as Strategy
    from .strategies.values import Summarize as Summarize
    from .strategies.values import Trim as Trim
    from .strategies.views import strategy_input_filter as strategy_input_filter
    from .strategies.views import view_of as view_of

_PUBLIC = {
    "errors": (
        "ConflictError",
        "EmbeddingError",
        "ExtractionError",
        "HistoryLostError",
        "LeaseLostError",
        "ModelRefusedError",
        "ModelUnavailableError",
        "UnusableAnswerError",
        "AccessDeniedError",
        "ConnectionLostError",
        "MissingTablesError",
        "UnreachableError",
        "ConversationNotCreatedError",
        "PartialBatchError",
        "DatabaseBusyError",
        "DiskFullError",
        "FileReplacedError",
        "ImportFormatError",
        "InvalidItemError",
        "MissingAbilityError",
        "MissingExtensionError",
        "MissingExtraError",
        "NotADatabaseError",
        "ReadOnlyError",
        "RecollectError",
        "RunLockTimeoutError",
        "ScanLimitError",
        "SchemaMismatchError",
        "SessionClosedError",
        "StatementRefusedError",
        "StorageError",
        "SummaryFailedError",
        "TransactionConflictError",
        "TransientError",
        "WrongKeyError",
    ),
    "items": (
        "ModelUsage",
        "Item",
        "Pairs",
        "estimate_tokens",
        "find_orphans",
        "fingerprint",
        "is_user_message",
        "newest_whole",
        "pair_calls",
        "split_turns",
        "text_of",
    ),
    "sessions.advanced.branches": ("BranchDiff",),
    "sessions.advanced.sqlalchemy": ("AdvancedSQLAlchemySession",),
    "sessions.advanced.sqlite": ("AdvancedSQLiteSession",),
    "sessions.advanced.turns": ("UserTurn",),
    "sessions.callbacks": (
        "chain_callbacks",
        "drop_sensitive",
        "limit_history",
        "mask_sensitive",
        "summarize_head",
    ),
    "sessions.changes": ("HistoryCounts", "ItemCount", "RemovedItems"),
    "sessions.history": (
        "RepairReport",
        "compress_history",
        "export_session",
        "import_session",
        "items_to_messages",
        "repair",
        "reset_session",
        "undo_items",
        "undo_turn",
    ),
    "sessions.in_memory": ("InMemorySession",),
    "sessions.manager": ("SessionManager", "open_session"),
    "sessions.sdk_import": ("ImportReport", "import_sdk_sessions"),
    "sessions.protocol": (
        "AppendsOnce",
        "Described",
        "Leasable",
        "Note",
        "Noted",
        "PopsChecked",
        "Positioned",
        "PositionedItem",
        "Rewritable",
        "Session",
        "SessionABC",
        "SessionInfo",
        "SessionInputCallback",
        "SessionMetadata",
        "SessionPage",
        "TResponseInputItem",
    ),
    "sessions.wrappers": ("RetryingSession",),
    "sessions.run_lock": ("run_lock",),
    "sessions.settings": ("SessionSettings",),
    "sessions.conversations": (
        "OpenAIConversationsSession",
        "start_openai_conversations_session",
    ),
    "sessions.redis": ("RedisSession",),
    "sessions.remote": ("RemoteSession",),
    "sessions.sqlalchemy": ("SQLAlchemySession",),
    "sessions.sqlite": ("AsyncSQLiteSession", "SQLiteSession"),
    "strategies.anchors": ("StoredSummary",),
    "strategies.configuration": (
        "resolve_memory_injection",
        "resolve_memory_strategy",
        "strategy_from_config",
        "strategy_to_config",
    ),
    "strategies.events": ("StrategyEvent",),
    "strategies.session": ("StrategySession",),
    "strategies.summarizers": (
        "AnthropicSummarizer",
        "ExtractiveSummarizer",
        "OpenAISummarizer",
        "Summarizer",
        "Summary",
        "SummaryRequest",
    ),
    "sessions.events": ("ConversationEvent", "EventLog", "event_of", "project_new_session_items"),
    "strategies.summaries": (
        "ConversationSummary",
        "ConversationSummaryStore",
        "build_injected_instructions",
        "inject_memory",
    ),
    "strategies.values": (
        "Compact",
        "Strategy",
        "Summarize",
        "Trim",
    ),
    "strategies.views": ("strategy_input_filter", "view_of"),
    "sessions.encryption": ("EncryptedSession",),
    "memory.conversation": (
        "Conversation",
        "ConversationSettings",
        "Message",
        "UNCHANGED",
    ),
    "memory.entry": (
        "Entry",
        "Evidence",
    ),
    "memory.manager": ("ConversationManager",),
    "memory.memory": ("Memory", "MemoryOutline", "UserOutline"),
    "memory.extraction": (
        "AnthropicExtractor",
        "OpenAIExtractor",
    ),
    "memory.offline": ("OfflineExtractor",),
    "memory.page": ("PageChanges", "PageLine", "UserPage"),
    "memory.prompting": ("PromptMemory", "PromptOptions", "PromptOwner", "PromptParts"),
    "memory.pipeline.runner": ("RunOptions",),
    "memory.pipeline.stages": ("Extractor",),
    "memory.run": (
        "Coverage",
        "Run",
        "RunFailure",
        "RunStage",
    ),
    "memory.store": ("MemoryStore",),
    "memory.hits": (
        "MemoryHit",
        "MemorySearch",
        "Recalled",
        "TurnHit",
        "TurnSearch",
    ),
    "memory.remote.store": ("RemoteMemoryStore",),
    "memory.rights.receipt": ("Receipt",),
    "memory.rights.why": ("Why",),
    "memory.search.embedders": (
        "CachedEmbedder",
        "CallableEmbedder",
        "Embedder",
        "LocalEmbedder",
        "OnnxEmbedder",
        "OpenAIEmbedder",
    ),
    "memory.pipeline.token_meter": ("TokenMeter",),
    "providers.openai.exports": (
        "OpenAIAgentProvider",
        "OpenAISQLAlchemySessionStore",
        "build_memory_strategy_config",
        "build_openai_provider",
        "prepare_run_context",
    ),
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    value: object = getattr(import_module(f"recollect.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
