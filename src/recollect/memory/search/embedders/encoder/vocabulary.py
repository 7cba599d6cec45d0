"""The vocabulary of the encoder as arrays: a trie of its pieces, and the table that normalizes characters.

The trie is a hash table of its edges. An edge leads from a node by a character to another node. Arrays need
no parsing when they are opened, and processes share their memory.
"""

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

NODE_FACTOR, CHARACTER_FACTOR = 0x9E3B1, 0x2545F
"""The hash of an edge is the sum of its node and character, each multiplied by its factor."""
SLOTS = 2**19
"""Of the hash table: about twice the edges."""
CHARACTER_BITS = 21

_PIECES, _CHARACTER_MAP = 1, (3, 2)  # fields of the model file
_TEXT, _SCORE = 1, 2  # fields of a piece
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types

Array = np.ndarray[Any, Any]


def vocabulary_arrays(model: bytes) -> dict[str, Array]:
    """The arrays of a SentencePiece model file."""
    texts, scores = [], []
    for number, piece in _fields(model):
        if number == _PIECES:
            fields = dict(_fields(piece))
            texts.append(fields[_TEXT].decode("utf-8"))
            scores.append(struct.unpack("<f", fields.get(_SCORE, bytes(4)))[0])
    specification = dict(_fields(model))[_CHARACTER_MAP[0]]
    mapped = dict(_fields(specification))[_CHARACTER_MAP[1]]
    size = int.from_bytes(mapped[:4], "little")
    return _trie_arrays(texts) | {
        "scores": np.array(scores, np.float32),
        "character_units": np.frombuffer(mapped[4 : 4 + size], "<u4"),
        "character_texts": np.frombuffer(mapped[4 + size :], np.uint8),
    }


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protocol buffer that have bytes or 32 bits as their value."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            _, place = _varint(message, place)
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire)
        if size is None:
            size, place = _varint(message, place)
        if wire in (_BYTES, _FIXED32):
            yield number, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while message[place] & 0x80:
        value |= (message[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | message[place] << shift, place + 1


def _trie_arrays(pieces: list[str]) -> dict[str, Array]:
    """The edges of a trie as a hash table, and the piece of each node, or -1. Node 0 is the root."""
    characters = np.array(pieces).view(np.uint32).reshape(len(pieces), -1).astype(np.int64)
    lengths = np.array([len(piece) for piece in pieces])
    nodes, count = np.zeros(len(pieces), np.int64), 1
    keys: list[NDArray[np.int64]] = []
    for depth in range(characters.shape[1]):
        longer = np.flatnonzero(lengths > depth)
        edges = nodes[longer] << CHARACTER_BITS | characters[longer, depth]
        distinct, places = np.unique(edges, return_inverse=True)
        keys.append(distinct)
        nodes[longer] = count + places
        count += len(distinct)
    piece_of = np.full(count, -1, np.int32)
    piece_of[nodes] = np.arange(len(pieces))
    return {"pieces": piece_of} | _hash_table(np.concatenate(keys))


def _hash_table(keys: NDArray[np.int64]) -> dict[str, Array]:
    """Edges by their hash, or in the next free slot. Edge `n` leads to node `n + 1`."""
    table, targets = np.full(SLOTS, -1, np.int64), np.zeros(SLOTS, np.int32)
    nodes, characters = keys >> CHARACTER_BITS, keys & (1 << CHARACTER_BITS) - 1
    slots = (nodes * NODE_FACTOR + characters * CHARACTER_FACTOR) % SLOTS
    waiting = np.arange(len(keys))
    while len(waiting):
        free, firsts = np.unique(slots[waiting], return_index=True)
        chosen = waiting[firsts[table[free] < 0]]
        table[slots[chosen]] = keys[chosen]
        targets[slots[chosen]] = chosen + 1
        waiting = waiting[table[slots[waiting]] != keys[waiting]]
        slots[waiting] = (slots[waiting] + 1) % SLOTS
    return {"edges": table, "targets": targets}
