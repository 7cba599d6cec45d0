"""Long-term memory: what is known about a user, with its evidence.

The names of the SDK's `agents.memory` can be imported from here, so that changing the package name in an
import is enough. They are the same classes as in `recollect`, which is the place to import them from.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers treat it as true; importing `typing` would cost time
if TYPE_CHECKING:
    from ..sessions.compaction import OpenAIResponsesCompactionArgs as OpenAIResponsesCompactionArgs
    from ..sessions.compaction import (
        OpenAIResponsesCompactionAwareSession as OpenAIResponsesCompactionAwareSession,
    )
    from ..sessions.compaction import OpenAIResponsesCompactionSession as OpenAIResponsesCompactionSession
    from ..sessions.compaction import (
        is_openai_responses_compaction_aware_session as is_openai_responses_compaction_aware_session,
    )
    from ..sessions.conversations import OpenAIConversationsSession as OpenAIConversationsSession
    from ..sessions.conversations import (
        start_openai_conversations_session as start_openai_conversations_session,
    )
    from ..sessions.protocol import Session as Session
    from ..sessions.protocol import SessionABC as SessionABC
    from ..sessions.protocol import SessionInputCallback as SessionInputCallback
    from ..sessions.protocol import TResponseInputItem as TResponseInputItem
    from ..sessions.settings import SessionSettings as SessionSettings
    from ..sessions.sqlite import SQLiteSession as SQLiteSession

_MODULE_OF = {
    "OpenAIConversationsSession": "conversations",
    "OpenAIResponsesCompactionArgs": "compaction",
    "OpenAIResponsesCompactionAwareSession": "compaction",
    "OpenAIResponsesCompactionSession": "compaction",
    "SQLiteSession": "sqlite",
    "Session": "protocol",
    "SessionABC": "protocol",
    "SessionInputCallback": "protocol",
    "SessionSettings": "settings",
    "TResponseInputItem": "protocol",
    "is_openai_responses_compaction_aware_session": "compaction",
    "start_openai_conversations_session": "conversations",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"recollect.sessions.{module}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
