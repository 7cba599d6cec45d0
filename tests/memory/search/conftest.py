import pytest

from recollect.memory.search.embedders import LocalEmbedder


@pytest.fixture(scope="package")
def local() -> LocalEmbedder:
    """The real one, whose weights are read once."""
    return LocalEmbedder()
