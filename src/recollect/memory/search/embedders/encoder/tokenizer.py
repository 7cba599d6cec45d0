"""Texts to tokens: the pieces of the vocabulary that together are the most likely ones.

No piece has a space after its first character, so the words of a text are independent of each other, and the
tokens of frequent words are cached.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .vocabulary import CHARACTER_BITS, CHARACTER_FACTOR, NODE_FACTOR, SLOTS

UNKNOWN, BEGIN, END = 0, 1, 2
_SPACE = "\u2581"  # begins each word
_WHITE = {9: " ", 10: " ", 12: " ", 13: " "}
_UNKNOWN_PENALTY = 10.0  # below the least likely piece
_MOST_WORDS = 20_000
_LONGEST_WORD = 32  # characters of a word that is cached
_MASK = SLOTS - 1
_WORST = -float("inf")


class Tokenizer:
    """Splits texts as the SentencePiece model does. `arrays` are those of `vocabulary`."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._edges = memoryview(arrays["edges"])
        self._targets = memoryview(arrays["targets"])
        self._pieces = memoryview(arrays["pieces"])
        self._scores = memoryview(arrays["scores"])
        self._units = memoryview(arrays["character_units"])
        self._texts = arrays["character_texts"].tobytes()
        self._unknown_score = float(arrays["scores"].min()) - _UNKNOWN_PENALTY
        self._cached = lru_cache(_MOST_WORDS)(self._split)

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, with those of its begin and end."""
        found = [BEGIN]
        for word in text.translate(_WHITE).split(" "):
            if word:
                found += self._cached(word) if len(word) <= _LONGEST_WORD else self._split(word)
        if len(found) == 1:
            found.append(UNKNOWN)
        found.append(END)
        return found

    def _split(self, word: str) -> tuple[int, ...]:
        """The tokens of a word: those with the highest sum of scores."""
        text = _SPACE + word if word.isascii() else self._normalize(word)
        codes = list(map(ord, text))
        best = [0.0] + [_WORST] * len(codes)
        starts, chosen = [0] * len(best), [UNKNOWN] * len(best)
        for start in range(len(codes)):
            self._extend(codes, start, best, starts, chosen)
            if best[start + 1] == _WORST:  # no piece is this character
                best[start + 1], starts[start + 1] = best[start] + self._unknown_score, start
        return _walk_back(starts, chosen)

    def _extend(
        self, codes: list[int], start: int, best: list[float], starts: list[int], chosen: list[int]
    ) -> None:
        """Add each piece that begins at a character, where it makes the best split up to its end."""
        edges, targets, pieces, scores = self._edges, self._targets, self._pieces, self._scores
        base, node = best[start], 0
        for end in range(start + 1, len(codes) + 1):
            code = codes[end - 1]
            key = node << CHARACTER_BITS | code
            slot = (node * NODE_FACTOR + code * CHARACTER_FACTOR) & _MASK
            while (edge := edges[slot]) != key:
                if edge < 0:
                    return
                slot = (slot + 1) & _MASK
            node = targets[slot]
            piece = pieces[node]
            if piece >= 0 and (score := base + scores[piece]) > best[end]:
                best[end], starts[end], chosen[end] = score, start, piece

    # --- normalization ---

    def _normalize(self, word: str) -> str:
        """A word with the characters of the vocabulary. It begins with a space, and has no two in a row."""
        data, place = word.encode("utf-8"), 0
        parts: list[bytes] = []
        while place < len(data):
            part, size = self._replace(data, place)
            parts.append(part)
            place += size
        words = b"".join(parts).decode("utf-8").split(" ")
        return "".join(_SPACE + each for each in words if each)

    def _replace(self, data: bytes, place: int) -> tuple[bytes, int]:
        """The replacement of the longest sequence that has one, and its size; else a character as it is."""
        units, longest, value = self._units, 0, 0
        node = _offset(units[0])
        for position in range(place, len(data)):
            node ^= data[position]
            if node >= len(units) or units[node] & 0x800000FF != data[position]:
                break
            unit = units[node]
            node ^= _offset(unit)
            if unit & 0x100:  # a sequence ends here
                longest, value = position + 1 - place, units[node] & 0x7FFFFFFF
        if longest:
            return self._texts[value : self._texts.index(0, value)], longest
        size = 1
        while place + size < len(data) and data[place + size] & 0xC0 == 0x80:
            size += 1
        return data[place : place + size], size


def _offset(unit: int) -> int:
    """The distance from a unit of the table to its children."""
    return (unit >> 10) << ((unit & 0x200) >> 6)


def _walk_back(starts: list[int], chosen: list[int]) -> tuple[int, ...]:
    found, place = [], len(starts) - 1
    while place > 0:
        found.append(chosen[place])
        place = starts[place]
    return tuple(reversed(found))
