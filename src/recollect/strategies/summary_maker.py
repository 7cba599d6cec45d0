"""Making summaries: once for a stretch of turns, beside the reads, and never at the cost of a run."""

import asyncio
import inspect
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from ..errors import SummaryFailedError
from ..items import Item, Tokenizer, estimate_text_tokens
from .anchors import Claim, Kept, StoredSummary
from .background import InFlight
from .events import Callback, View, describe_change, tell
from .reader import Look, Looker
from .summarizers.protocol import Summarizer, Summary, SummaryRequest
from .values import Summarize
from .views import summary_items

logger = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT = 0.02, 0.5  # seconds between looks at what another is making
_GRACE = 0.1  # seconds, in which one that takes too long ends by itself
_TRIES = 4
_LONGEST_TOKEN = 16  # characters, more than most tokens have


class SummaryMaker:
    """Makes the summaries of one session, one at a time.

    Another handle, thread or process that is about to make the same one leaves a claim beside the history;
    who finds it waits for the outcome instead of asking the model again.
    """

    def __init__(
        self,
        looker: Looker,
        strategy: Summarize,
        name: Callable[[], str],
        *,
        summarizer: Summarizer,
        timeout: float,
        on_summary: Callback | None,
        tokenizer: Tokenizer | None,
    ) -> None:
        self._looker = looker
        self._strategy = strategy
        self._name = name  # asked for when it is needed: a session may have none before its first call
        self._summarizer = summarizer
        self._timeout = timeout
        self._on_summary = on_summary
        self._tokenizer = tokenizer
        self._owner = uuid.uuid4().hex
        self._has_hung = self._took_too_long = False
        self._in_flight = InFlight(self._make, patience=timeout + _GRACE)
        self.failures = 0
        """How often there was no summary when there should have been one."""

    def start(self) -> None:
        """See to it that a summary is being made, and do not wait for it."""
        self._in_flight.start()

    async def wait(self) -> None:
        """See to it that a summary is being made, and wait for it; not if the last one took too long."""
        work, began = self._in_flight.start(), time.monotonic()
        self._took_too_long = False
        done = await work.wait(0.0 if self._has_hung else self._timeout + _GRACE)
        # Only who has waited for it knows that it hangs: an event loop may stand still between two runs.
        waited = time.monotonic() - began >= self._timeout
        if waited and (self._took_too_long or not done):
            self._has_hung = True

    async def finish(self) -> None:
        """Wait for what is being made, as long as it may take, and give it up then."""
        await self._in_flight.finish()

    async def give_up(self) -> None:
        """Make no more of what is being made."""
        await self._in_flight.cancel()

    async def _make(self) -> None:
        """One attempt. Whatever goes wrong in it is counted, and the next turn tries again."""
        try:
            async with asyncio.timeout(self._timeout):
                await self._make_if_needed()
            self._has_hung = False
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # we are given up; else it was the summarizer that was cancelled
            self._count_failure("CancelledError")
        except TimeoutError as error:
            self._took_too_long = True
            self._count_failure(type(error).__name__)
        except Exception as error:  # noqa: BLE001 - code of the user, whose faults must not end a run
            self._count_failure(type(error).__name__)

    def _count_failure(self, what: str) -> None:
        self.failures += 1
        logger.warning("no summary was made (%s): the view goes without it until the next turn", what)

    async def _make_if_needed(self) -> None:
        look = await self._looker.look()
        claimed = await self._claim(look.key)
        if claimed is None:
            return
        try:
            stretch = await self._read_stretch(claimed)
            summary = await self._summarize(stretch, claimed)
            stored = await self._store(look.key, claimed, summary)
        except (Exception, asyncio.CancelledError):
            await self._drop_claim(look.key)
            raise
        if stored and self._on_summary is not None:
            await self._tell(self._on_summary, look, stretch, claimed, summary)

    # --- who makes it ---

    async def _claim(self, key: str) -> Kept | None:
        """What is kept, with a claim of ours; `None` where there is nothing to make any more."""
        wait = _FIRST_WAIT
        while True:
            kept = await self._looker.notes.get(key)
            if kept.anchor is None or not kept.anchor.lags:
                self._looker.forget()  # another has made it, or the history has changed
                return None
            claim = kept.anchor.claim
            if claim is None or claim.owner == self._owner or claim.until <= time.time():
                claim = Claim(self._owner, time.time() + self._timeout)
                claimed = await self._looker.notes.put(key, replace(kept.anchor, claim=claim), kept.version)
                if claimed is not None:
                    return claimed
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT)

    async def _drop_claim(self, key: str) -> None:
        kept = await self._looker.notes.get(key)
        if self._is_ours(kept) and kept.anchor is not None:
            await self._looker.notes.put(key, replace(kept.anchor, claim=None), kept.version)

    def _is_ours(self, kept: Kept) -> bool:
        claim = kept.anchor.claim if kept.anchor else None
        return claim is not None and claim.owner == self._owner

    # --- making it ---

    async def _read_stretch(self, claimed: Kept) -> list[Item]:
        stretch = await self._looker.log.read_stretch(claimed.anchor) if claimed.anchor else None
        if not stretch:
            await self._looker.void()  # else every later attempt would fail over the same
            raise SummaryFailedError("the turns to summarize are not what they were")
        return stretch

    async def _summarize(self, stretch: list[Item], claimed: Kept) -> StoredSummary:
        assert claimed.anchor is not None
        previous, limit = claimed.anchor.summary, self._strategy.summary_max_tokens
        request = SummaryRequest(stretch, previous.text if previous else None, limit, self._name())
        answer = self._summarizer(request)
        made = await answer if inspect.isawaitable(answer) else answer
        text = made.text if isinstance(made, Summary) else made
        if not isinstance(text, str) or not text.strip():
            raise SummaryFailedError("the summarizer returned nothing")
        return StoredSummary(
            shorten(text, limit, self._tokenizer),
            claimed.anchor.cut,
            previous.version + 1 if previous else 1,
            made.model if isinstance(made, Summary) else None,
        )

    async def _store(self, key: str, claimed: Kept, summary: StoredSummary) -> bool:
        """Keep a summary; `False` if the history has changed under it."""
        kept = claimed
        for _ in range(_TRIES):
            # The cut may have moved on meanwhile; then the claim is still there.
            if kept.anchor is None or not self._is_ours(kept):
                break
            stored = await self._looker.notes.put(key, kept.anchor.with_summary(summary), kept.version)
            if stored is not None:
                self._looker.remember(key, stored)
                return True
            kept = await self._looker.notes.get(key)
        self._looker.forget()
        return False

    async def _tell(
        self, callback: Callback, look: Look, stretch: list[Item], claimed: Kept, summary: StoredSummary
    ) -> None:
        assert claimed.anchor is not None
        anchor, window = claimed.anchor, look.window
        told = summary_items(anchor.summary.text, self._strategy) if anchor.summary else []
        shown = len(window.starts)
        covered = range(anchor.summarized.turns + 1, anchor.cut.turns + 1)
        event = describe_change(
            "summary",
            self._name(),
            View(shown + len(covered), [*window.head, *told, *stretch, *window.items]),
            View(shown, [*window.head, *summary_items(summary.text, self._strategy), *window.items]),
            trigger=anchor.trigger,
            turns=covered,
            concerned=stretch,
            tokenizer=self._tokenizer,
            summary=summary,
        )
        await tell(callback, event)


def shorten(text: str, max_tokens: int, tokenizer: Tokenizer | None = None) -> str:
    """A text of at most so many tokens, cut between words where it is too long."""
    count = tokenizer or estimate_text_tokens
    text = text[: (max_tokens + 1) * _LONGEST_TOKEN].encode("utf-8", "replace").decode().replace("\0", "")
    text = text.strip()
    if count(text) <= max_tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle] + "…") <= max_tokens else (low, middle - 1)
    short = text[:low]
    return (short.rsplit(None, 1)[0] if any(map(str.isspace, short)) else short).rstrip() + "…"
