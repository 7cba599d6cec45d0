"""What is tried: a function of bytes that raises where a promise does not hold."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

Check: TypeAlias = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """A check of any bytes, and how much of all trying it gets."""

    name: str
    place: str
    """Where the check is: `module:check_…`, or `module:open_…` for one that needs something around it."""
    inputs: int
    """How many of ten million; the quicker a check is, the more."""
    traced: tuple[str, ...]
    """The modules in which the fuzzer looks where the code goes."""
    longest: int = 512
    """Bytes of an input."""
    needs_postgres: bool = False

    @contextmanager
    def open(self) -> Iterator[Check]:
        """The check, with what it needs around it: a file, a database, an event loop."""
        module, _, name = self.place.partition(":")
        found = getattr(import_module(f"{__package__}.targets.{module}"), name)
        if name.startswith("check_"):
            yield found
        else:
            with found() as check:
                yield check


def check_told(error: Exception) -> None:
    """Whoever is refused must be told why."""
    assert str(error), f"{type(error).__name__} says nothing"
