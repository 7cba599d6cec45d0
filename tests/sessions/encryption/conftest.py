"""A Redis server for these tests, as those of the Redis sessions have it."""

from ..redis.conftest import prefix, redis_url

__all__ = ["prefix", "redis_url"]
