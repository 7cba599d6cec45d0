"""What only encrypted sessions are measured by: rotation, and stalls of the event loop while decrypting."""

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from ..harness import Measure, Metric, Sample, Sampler, timed
from ..processes import Parent, call_in_process
from ..sessions.footprint import _Ticker as Ticker
from ..sessions.histories import Workspace
from ..shared.calls import TIME
from ..shared.items import SESSION, make_items
from ..shared.stores import check_read, live_session, short
from .contenders import AES_GCM, BASELINES, CONTENDERS, FERNET, encrypted, filled, use_as

_KEYS = ["one key", "another key"]


def rotate(workspace: Workspace, size: int, repeats: int) -> Measure:
    """Encrypt a whole history under another key, in one transaction; the next time under the first again."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {cipher: await _rotating(workspace.new_path(), cipher, size) for cipher in (FERNET, AES_GCM)}

    what = f"rotate the key of {size:,} items"
    return Measure(f"rotate-{short(size)}", what, TIME, repeats, open_all, ())


async def _rotating(path: Path, cipher: str, size: int) -> Sampler:
    sessions = [encrypted(SESSION, path, cipher, keys) for keys in (_KEYS, _KEYS[::-1])]
    await sessions[0].add_items(make_items(size))

    async def sample() -> Sample:
        sessions.reverse()
        return {"time": await timed(partial(_rotate_all, sessions[0], size))}

    return sample


async def _rotate_all(session: Any, size: int) -> None:
    rotated = await session.rotate()
    if rotated != size:
        raise AssertionError(f"{rotated} items were rotated and not {size}")


def stall(workspace: Workspace, size: int, repeats: int) -> Measure:
    """How long a large read keeps everything else on the event loop waiting."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        paths = {name: await filled(name, workspace, {SESSION: size}) for name in CONTENDERS}
        yield {name: partial(_read_in_process, name, path, size) for name, path in paths.items()}

    metrics = (Metric("longest stall"), Metric("read"))
    what = f"read {size:,} items while the event loop ticks"
    return Measure(f"stall-{short(size)}", what, metrics, repeats, open_all, BASELINES, warm_up=False)


async def _read_in_process(contender: str, path: Path, size: int) -> Sample:
    sample: Sample = call_in_process(_read_while_ticking, contender, path, size)
    return sample


def _read_while_ticking(_: Parent, contender: str, path: Path, size: int) -> Sample:
    return asyncio.run(_read_while_ticking_in_loop(contender, path, size))


async def _read_while_ticking_in_loop(contender: str, path: Path, size: int) -> Sample:
    async with live_session(use_as(contender, path), SESSION) as session:
        gc.collect()
        async with Ticker() as ticker:
            await asyncio.sleep(0.05)
            ticker.take_longest()
            started = perf_counter()
            items = await session.get_items()
            read = perf_counter() - started
            longest = ticker.take_longest()
    check_read(contender, items, size)
    return {"longest stall": longest, "read": read}
