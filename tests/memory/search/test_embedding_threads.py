"""The threads that embedders compute in."""

import asyncio
import os

from recollect.memory.search.embedders.local import run_in_embedding_thread

_LONGEST = 20  # seconds after which a child process that hangs has failed


async def _works() -> bool:
    async with asyncio.timeout(_LONGEST):
        return await run_in_embedding_thread(os.getpid) == os.getpid()


def test_a_forked_process_has_threads_of_its_own() -> None:
    assert asyncio.run(_works())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if asyncio.run(_works()) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
