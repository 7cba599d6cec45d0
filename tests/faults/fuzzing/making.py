"""Inputs made up from a seed: what is in the corpus, changed a little."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
_TOKENS = (
    b'"',
    b"{",
    b"[",
    b"]",
    b"}",
    b"\\",
    b"\\u0000",
    b"null",
    b"\0",
    b"\xff",
    b"'",
    b"%",
    b"NaN",
    b"1e999",
    b"--",
)


def kept_inputs(target: str) -> list[Path]:
    """What is kept for a target: examples to begin with, and all that was ever found."""
    return sorted(path for path in (CORPUS / target).glob("*") if path.is_file())


def made_up(target: str, seed: int, count: int, longest: int) -> Iterator[bytes]:
    """So many inputs, always the same ones for a seed."""
    chance = random.Random(f"{target} {seed}")
    seeds = [path.read_bytes() for path in kept_inputs(target)] or [b""]
    for _ in range(count):
        yield changed(chance.choice(seeds), chance, seeds)[:longest]


def changed(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """The input with up to eight changes; or another altogether."""
    if chance.random() < 0.2:
        return chance.randbytes(chance.randrange(200))
    made = bytearray(data)
    for _ in range(chance.randrange(1, 9)):
        place = chance.randrange(len(made) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            made[place : place + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            made[place:place] = chance.choice(_TOKENS)
        elif kind == 2:
            del made[place : place + chance.randrange(1, 9)]
        elif kind == 3:
            made[place:place] = chance.randbytes(chance.randrange(9))
        else:
            other = chance.choice(others)
            made[place:] = other[chance.randrange(len(other) + 1) :]
    return bytes(made)
