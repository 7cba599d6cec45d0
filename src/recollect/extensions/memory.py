"""Sessions under the path they have in the Agents SDK: `recollect.extensions.memory`.

They are the same classes as in `recollect`, which is the place to import them from.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..sessions.advanced.sqlite import AdvancedSQLiteSession as AdvancedSQLiteSession
    from ..sessions.encryption import EncryptedSession as EncryptedSession
    from ..sessions.redis import RedisSession as RedisSession
    from ..sessions.sqlalchemy import SQLAlchemySession as SQLAlchemySession
    from ..sessions.sqlite import AsyncSQLiteSession as AsyncSQLiteSession

__all__ = [
    "AdvancedSQLiteSession",
    "AsyncSQLiteSession",
    "EncryptedSession",
    "RedisSession",
    "SQLAlchemySession",
]
_NOT_HERE = ("DAPR_CONSISTENCY_EVENTUAL", "DAPR_CONSISTENCY_STRONG", "DaprSession", "MongoDBSession")


def __getattr__(name: str) -> object:
    if name in _NOT_HERE:
        raise ImportError(
            f"Recollect has no {name}: import it from agents.extensions.memory; wrappers such as"
            " StrategySession take sessions of the SDK too"
        )
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("recollect"), name)


def __dir__() -> list[str]:
    return __all__
