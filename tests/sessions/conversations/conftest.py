import openai
import pytest

from recollect.testing.providers import ProviderServer


@pytest.fixture(scope="session")
def shared_client(running_server: ProviderServer) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=running_server.base_url, api_key=running_server.api_key)


@pytest.fixture
def client(shared_client: openai.AsyncOpenAI) -> openai.AsyncOpenAI:
    """A client of the test's own, with the retries that clients have by default."""
    return shared_client.copy()


@pytest.fixture
def hasty_client(shared_client: openai.AsyncOpenAI) -> openai.AsyncOpenAI:
    """A client that retries nothing."""
    return shared_client.copy(max_retries=0)
