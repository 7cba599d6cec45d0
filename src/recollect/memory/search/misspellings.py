"""The words at one edit from a word, looked up by their hashes. Only the words that are found are made.

The hash of a term is its CRC-32, which is linear: replacing a character changes it by a number that depends
only on the change and on the distance from the end. So the hashes of all words with one character replaced or
added are looked up in a table, without making hundreds of words.
"""

import zlib
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np

from .documents import Flags
from .records import Terms

LONGEST = 40
"""Characters of a word whose misspellings are looked up."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_CODES = np.frombuffer(_LETTERS.encode(), np.uint8)
_ASCII = 128


def known_edits(word: str, has: Callable[[Terms], Flags]) -> list[str]:
    """The words at one edit from a word that exist, sorted: a letter dropped, swapped, replaced or added.

    The word has at most `LONGEST` characters, all of them ASCII. `has` says which of some hashes exist.
    """
    found = {_edit(word, place) for place in np.flatnonzero(has(_hashes_of_edits(word))).tolist()}
    return sorted(found - {word})


@lru_cache(maxsize=32)  # a recall looks the same words up in entries and in messages
def _hashes_of_edits(word: str) -> Terms:
    """The hashes of all edits, in the order of `_edit`."""
    size = len(word)
    whole = [zlib.crc32(edit.encode()) for edit in _shorter_or_swapped(word)]
    before = [zlib.crc32(f"{word[:place]}a{word[place:]}".encode()) for place in range(size + 1)]
    changes = np.frombuffer(word.encode(), np.uint8)[:, None] ^ _CODES
    replaced = np.uint32(zlib.crc32(word.encode())) ^ _changed_by()[np.arange(size)[::-1, None], changes]
    added = np.array(before, np.uint32)[:, None] ^ _changed_by()[size::-1, ord("a") ^ _CODES]
    return np.concatenate([np.array(whole, np.uint32), replaced.ravel(), added.ravel()])


def _edit(word: str, place: int) -> str:
    """The edit at a place among the hashes."""
    whole = _shorter_or_swapped(word)
    if place < len(whole):
        return whole[place]
    at, letter = divmod(place - len(whole), len(_LETTERS))
    if at < len(word):
        return word[:at] + _LETTERS[letter] + word[at + 1 :]
    at -= len(word)
    return word[:at] + _LETTERS[letter] + word[at:]


def _shorter_or_swapped(word: str) -> list[str]:
    """The word without each of its letters, and with each two neighbours swapped."""
    dropped = [word[:place] + word[place + 1 :] for place in range(len(word))]
    return dropped + [
        word[:place] + word[place + 1] + word[place] + word[place + 2 :] for place in range(len(word) - 1)
    ]


@cache
def _changed_by() -> Terms:
    """By how many characters follow, and by the bits of a character that change: the change of the hash."""
    return np.array(
        [
            [zlib.crc32(bytes([bits]) + rest) ^ zlib.crc32(b"\0" + rest) for bits in range(_ASCII)]
            for rest in (bytes(count) for count in range(LONGEST + 1))
        ],
        np.uint32,
    )
