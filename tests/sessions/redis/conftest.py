"""Real Redis servers, started once for a test run, or named by the environment."""

import os
import uuid
from collections.abc import Iterator

import pytest

from recollect.testing.servers.redis import RedisCluster


@pytest.fixture(scope="session")
def cluster_url() -> Iterator[str]:
    """A Redis Cluster: `RECOLLECT_TEST_REDIS_CLUSTER_URL`, or one of our own, as redis+cluster://…"""
    given = os.environ.get("RECOLLECT_TEST_REDIS_CLUSTER_URL")
    if given:
        yield given
        return
    with RedisCluster() as cluster:
        yield cluster.url


@pytest.fixture
def prefix() -> str:
    """Keys that no other test has, on whatever server."""
    return f"recollect-test:{uuid.uuid4().hex}"
