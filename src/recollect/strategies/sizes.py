"""What turns cost a view, in tokens."""

from collections.abc import Sequence
from itertools import pairwise

from ..items import Item, Tokenizer, estimate_tokens
from .cut import Size
from .placeholders import compact_items
from .values import Compact, Strategy
from .windows import Window


def size_of(turn: Sequence[Item], strategy: Strategy, tokenizer: Tokenizer | None = None) -> Size:
    """What a turn costs, before and after the cut has passed it."""
    return Size(estimate_tokens(turn, tokenizer), tokens_behind(turn, strategy, tokenizer))


def tokens_behind(items: Sequence[Item], strategy: Strategy, tokenizer: Tokenizer | None = None) -> int:
    """What items cost a view in which they are behind the cut."""
    if not isinstance(strategy, Compact):
        return 0
    return estimate_tokens(compact_items(items, len(items), strategy), tokenizer)


class Sizes:
    """The sizes of turns. Counting takes longer than reading, so it is remembered where positions last."""

    def __init__(self, strategy: Strategy, tokenizer: Tokenizer | None) -> None:
        self._strategy = strategy
        self._tokenizer = tokenizer
        self._known: dict[tuple[int, int], Size] = {}

    def unknown(self, window: Window) -> list[Size]:
        """One for each turn, where only their number matters."""
        return [Size()] * len(window.starts)

    def of_turns(self, window: Window) -> list[Size]:
        """The size of each turn of a window."""
        if not window.has_positions:
            return [self._size(turn) for turn in window.turns()]
        edges = list(pairwise([*window.starts, len(window.items)]))
        places = [(window.positions.of(start), window.positions.of(end - 1)) for start, end in edges]
        self._known = {
            place: self._known.get(place) or self._size(window.items[start:end])
            for place, (start, end) in zip(places, edges, strict=True)
        }
        return list(self._known.values())

    def _size(self, turn: list[Item]) -> Size:
        return size_of(turn, self._strategy, self._tokenizer)
