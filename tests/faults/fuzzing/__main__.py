"""A process that tries inputs on one target.

`python -m tests.faults.fuzzing TARGET` tries what is kept for it and some that are made up.
`python -m tests.faults.fuzzing TARGET FILE ...` tries the inputs of files; what does not hold is a traceback.
`python -m tests.faults.fuzzing TARGET -runs=1000 FOLDER` gives the rest of the line to libFuzzer.
"""

import hashlib
import logging
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from .target import Check

_RAISED = 77  # as libFuzzer ends where it finds something


def main() -> None:
    """Try what the command line says."""
    logging.disable(logging.CRITICAL)  # millions of damaged rows would be told
    name, *given = sys.argv[1:]
    if any(each.startswith("-") for each in given):
        _fuzz(name, given)
    elif given:
        _replay(name, (Path(each).read_bytes() for each in given))
    else:
        from .trying import short_form

        _replay(name, short_form(name))


def _replay(name: str, inputs: Iterable[bytes]) -> None:
    from .trying import try_all

    print(f"{name}: {try_all(name, inputs)} inputs hold")


def _fuzz(name: str, options: list[str]) -> None:
    import atheris

    from .targets import TARGETS

    target = TARGETS[name]
    with atheris.instrument_imports(include=list(target.traced), enable_loader_override=False):
        opened = target.open()
        check = opened.__enter__()
    atheris.Setup([sys.argv[0], *options], _Kept(check, options))
    atheris.Fuzz()  # ends the process: nothing is closed, and whoever started it clears up


class _Kept:
    """A check whose input is kept when it raises; the process then ends at once, whatever threads it has."""

    def __init__(self, check: Check, options: list[str]) -> None:
        self._check = check
        told = (each.removeprefix("-artifact_prefix=") for each in options if "-artifact_prefix=" in each)
        self._prefix = next(told, "./")
        self._count = 0

    def __call__(self, data: bytes) -> None:
        """Try an input."""
        self._count += 1
        try:
            self._check(data)
        except BaseException as error:  # noqa: BLE001 - the process ends here, and tells why
            name = f"{self._prefix}crash-{hashlib.sha256(data).hexdigest()[:12]}"
            Path(name).write_bytes(data)
            traceback.print_exc()
            print(
                f"\nraised: {type(error).__name__}: {error}\ninputs: {self._count}",
                file=sys.stderr,
                flush=True,
            )
            os._exit(_RAISED)


if __name__ == "__main__":
    main()
