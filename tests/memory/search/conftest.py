from collections.abc import Iterator

import pytest

from recollect.memory.search.embedders import LocalEmbedder
from recollect.testing.providers import ProviderServer


@pytest.fixture(scope="package")
def local() -> LocalEmbedder:
    """The real one, whose weights are read once."""
    return LocalEmbedder()


@pytest.fixture(scope="package")
def running_server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
def server(running_server: ProviderServer) -> ProviderServer:
    """A server that has forgotten all tests before."""
    running_server.reset()
    return running_server
