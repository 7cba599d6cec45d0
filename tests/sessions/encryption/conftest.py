"""A Redis server for these tests, as those of the Redis sessions have it."""

from ..redis.conftest import prefix

__all__ = ["prefix"]
