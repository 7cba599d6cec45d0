"""A disk whose power can be cut: what is stored of a file is known at any time.

Processes that are started with `environment()` flush to it. The library is compiled here.
"""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

_SOURCE = Path(__file__).with_name("power.c")
Behaviour = Literal["store", "fail", "hold"]


@cache
def _library() -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("a disk without power needs a C compiler: apt-get install gcc libc6-dev")
    library = Path(mkdtemp(prefix="recollect-power-")) / "power.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, _SOURCE, "-ldl"], check=True)
    return library


class Disk:
    """The files of a folder as processes see them, and as a power cut would leave them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stored = folder / "stored"
        self._stored.mkdir()
        self._held = folder / "behaviour.held"

    def environment(self) -> dict[str, str]:
        """The environment variables of a process that uses the disk."""
        return {"LD_PRELOAD": str(_library()), "RECOLLECT_DISK": str(self.folder)}

    def flushes(self, behaviour: Behaviour) -> None:
        """Let flushes store, fail, or wait until this changes, from now on and in all processes."""
        self._held.unlink(missing_ok=True)
        temporary = self.folder / "behaviour.new"
        temporary.write_text(behaviour[0])
        temporary.replace(self.folder / "behaviour")

    def is_holding(self) -> bool:
        """Whether a process waits in a flush: all that it writes before the flush is written."""
        return self._held.exists()

    def cut_power(self, to: Path) -> None:
        """Copy to a folder what a power cut leaves now."""
        to.mkdir()
        for file in self._stored.iterdir():
            if file.suffix != ".dirty":
                shutil.copy(file, to / file.name)
