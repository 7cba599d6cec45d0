from collections.abc import Iterator

import pytest

from .compactor import Compactor, running_compactor


@pytest.fixture
def server() -> Iterator[Compactor]:
    with running_compactor() as compactor:
        yield compactor
