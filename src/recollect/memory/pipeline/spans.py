"""Which messages a run takes in: so many that a model can read them at once."""

from collections.abc import Sequence

from ..conversation import Message

_MOST_MESSAGES = 100
_MOST_CHARACTERS = 40_000


def spans_of(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """The first and the last index of each run over these messages."""
    spans: list[tuple[int, int]] = []
    size = 0
    for message in messages:
        size += len(message.content)
        if spans and _fits(spans[-1], message.message_index, size):
            spans[-1] = (spans[-1][0], message.message_index)
        else:
            spans.append((message.message_index, message.message_index))
            size = len(message.content)
    return spans


def _fits(span: tuple[int, int], index: int, size: int) -> bool:
    return index - span[0] < _MOST_MESSAGES and size <= _MOST_CHARACTERS
