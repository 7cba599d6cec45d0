"""Embeds the short texts of concurrent callers together.

Most of the time that a question takes goes into reading the weights of the model. Questions that come in the
same cycle of the event loop share it: four of them take little more than half of the time for each.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ....event_loops import PerLoop
from ..documents import Vectors

EmbedNow: TypeAlias = Callable[[Sequence[str]], Vectors]

_AT_ONCE = 16  # callers: the event loop waits for them


class _Caller(NamedTuple):
    texts: Sequence[str]
    vectors: "asyncio.Future[Vectors]"


class TextsTogether:
    """Embeds in the thread of the event loop, for all callers of a cycle at once."""

    def __init__(self, embed_now: EmbedNow) -> None:
        self._embed_now = embed_now
        self._waiting: PerLoop[list[_Caller]] = PerLoop(list)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text."""
        waiting, loop = self._waiting.get(), asyncio.get_running_loop()
        caller = _Caller(texts, loop.create_future())
        if not waiting:
            loop.call_soon(self._embed_some, waiting)
        waiting.append(caller)
        return await caller.vectors

    def _embed_some(self, waiting: list[_Caller]) -> None:
        some = [caller for caller in waiting[:_AT_ONCE] if not caller.vectors.done()]
        del waiting[:_AT_ONCE]
        if waiting:
            asyncio.get_running_loop().call_soon(self._embed_some, waiting)
        if some:
            self._embed_all(some)

    def _embed_all(self, some: Sequence[_Caller]) -> None:
        try:
            found = self._embed_now([text for caller in some for text in caller.texts])
        except Exception as error:  # noqa: BLE001 - each caller gets its own error
            self._embed_each(some, error)
            return
        first = 0
        for caller in some:
            caller.vectors.set_result(found[first : first + len(caller.texts)])
            first += len(caller.texts)

    def _embed_each(self, some: Sequence[_Caller], error: Exception) -> None:
        """The texts of one caller cannot be embedded: the others get their vectors."""
        if len(some) == 1:
            some[0].vectors.set_exception(error)
        else:
            for caller in some:
                try:
                    caller.vectors.set_result(self._embed_now(caller.texts))
                except Exception as its_error:  # noqa: BLE001 - as above
                    caller.vectors.set_exception(its_error)
