"""What is known, so arranged that what says the same is found without looking at all of it."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from ..texts.similarity import Meaning, mean_the_same, meaning_of

_MOST_PER_WORD = 60  # the newest that have a word; a word of more than that tells little apart
_MOST_WORDS = 40


class Known:
    """Texts by their keys, and by their words."""

    def __init__(self) -> None:
        self._meanings: dict[str, Meaning] = {}
        self._texts: dict[str, str] = {}
        self._by_text: dict[str, str] = {}
        self._by_word: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, key: str, text: str) -> None:
        """Take in a text."""
        meaning = meaning_of(text)
        self._meanings[key] = meaning
        self._texts[key] = text
        self._by_text.setdefault(text, key)
        for word in _findable(meaning):
            self._by_word[word].append(key)

    def text_of(self, key: str) -> str:
        """The text with a key."""
        return self._texts[key]

    def same_as(self, text: str) -> str | None:
        """The key of a text that says the same."""
        if text in self._by_text:
            return self._by_text[text]
        meaning = meaning_of(text)
        return next((key for key, other in self.near(meaning) if mean_the_same(meaning, other)), None)

    def near(self, meaning: Meaning) -> Iterator[tuple[str, Meaning]]:
        """Those that share words with it, the nearest first."""
        shared: Counter[str] = Counter()
        for word in sorted(_findable(meaning), key=self._how_common)[:_MOST_WORDS]:
            shared.update(self._by_word.get(word, [])[-_MOST_PER_WORD:])
        for key, _ in shared.most_common():
            yield key, self._meanings[key]

    def _how_common(self, word: str) -> tuple[int, str]:
        return len(self._by_word.get(word, [])), word


def _findable(meaning: Meaning) -> frozenset[str]:
    """What a text is found by: its words and numbers, or its dates where it has nothing else."""
    return meaning.words | meaning.numbers or frozenset(map(str, meaning.dates))
