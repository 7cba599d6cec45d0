"""Sessions in Redis."""

from .catalog import RedisCatalog
from .session import RedisSession

__all__ = ["RedisCatalog", "RedisSession"]
