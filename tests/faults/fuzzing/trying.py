"""Trying inputs without a fuzzer: those that are kept, and some that are made up from a seed."""

from collections.abc import Iterable, Iterator

from .making import kept_inputs, made_up
from .targets import TARGETS

_SEED = 10
_MADE_UP = 200
_SLOW, _FEW = (
    6_000,
    60,
)  # targets that get no more than so many in the long form, get so many in the short one


def short_form(name: str) -> Iterator[bytes]:
    """All that is kept for a target, and a few that are made up, always the same."""
    for path in kept_inputs(name):
        yield path.read_bytes()
    target = TARGETS[name]
    yield from made_up(name, _SEED, _FEW if target.inputs <= _SLOW else _MADE_UP, target.longest)


def try_all(name: str, inputs: Iterable[bytes]) -> int:
    """Try inputs on a target, and tell how many; the first that does not hold raises, with the input."""
    count = 0
    with TARGETS[name].open() as check:
        for data in inputs:
            try:
                check(data)
            except Exception as error:
                error.add_note(f"the target {name} was given {data!r}")
                raise
            count += 1
    return count
