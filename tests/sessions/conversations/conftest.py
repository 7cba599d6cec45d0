import openai
import pytest

from recollect.testing.providers import ProviderServer


@pytest.fixture(scope="session")
def shared_client(running_server: ProviderServer) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=running_server.base_url, api_key=running_server.api_key)


@pytest.fixture
def client(shared_client: openai.AsyncOpenAI) -> openai.AsyncOpenAI:
    """A client with the default number of retries."""
    return shared_client.copy()


@pytest.fixture
def hasty_client(shared_client: openai.AsyncOpenAI) -> openai.AsyncOpenAI:
    """A client without retries."""
    return shared_client.copy(max_retries=0)
