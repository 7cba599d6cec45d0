"""Making summaries in the background: once for each range of turns, and without failing a run."""

import asyncio
import inspect
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from ..errors import SummaryFailedError
from ..ids import new_hex
from ..items import Item, Tokenizer, estimate_text_tokens
from .anchors import Claim, StoredAnchor, StoredSummary
from .background import BackgroundTask
from .events import Callback, View, describe_change, notify
from .reader import ViewReader, ViewState
from .summarizers.protocol import Summarizer, Summary, SummaryRequest
from .values import Summarize
from .views import summary_items

logger = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT = 0.02, 0.5  # seconds between checks of a summary that another process makes
_GRACE = 0.1  # seconds in which an attempt that timed out ends by itself
_ATTEMPTS = 4
_LONGEST_TOKEN = 16  # characters, more than most tokens have


class SummaryMaker:
    """Makes the summaries of one session, one at a time.

    Before it asks the summarizer, it stores a claim in the note of the anchor. Other handles, threads and
    processes that find the claim wait for the summary instead of making it again.
    """

    def __init__(
        self,
        reader: ViewReader,
        strategy: Summarize,
        session_id: Callable[[], str],
        *,
        summarizer: Summarizer,
        timeout: float,
        on_summary: Callback | None,
        tokenizer: Tokenizer | None,
    ) -> None:
        self._reader = reader
        self._strategy = strategy
        self._session_id = session_id  # a function: a session may have no id before its first call
        self._summarizer = summarizer
        self._timeout = timeout
        self._on_summary = on_summary
        self._tokenizer = tokenizer
        self._owner = new_hex()
        self._has_hung = self._timed_out = False
        self._task = BackgroundTask(self._attempt, timeout + _GRACE)
        self.failures = 0
        """How often a summary was needed and could not be made."""

    def start(self) -> None:
        """Start making a summary, unless one is being made. Does not wait for it."""
        self._task.start()

    async def wait(self) -> None:
        """Start making a summary and wait for it. After an attempt that timed out, do not wait."""
        attempt, began = self._task.start(), time.monotonic()
        self._timed_out = False
        done = await attempt.wait(0.0 if self._has_hung else self._timeout + _GRACE)
        # Time counts only while we wait: between two runs the event loop may be stopped.
        waited = time.monotonic() - began >= self._timeout
        if waited and (self._timed_out or not done):
            self._has_hung = True

    async def finish(self) -> None:
        """Wait for the summary that is being made, and cancel it if it does not end in time."""
        await self._task.finish()

    async def cancel(self) -> None:
        """Cancel the summary that is being made."""
        await self._task.cancel()

    async def _attempt(self) -> None:
        """One attempt. Every failure is counted and logged, and the next turn tries again."""
        try:
            async with asyncio.timeout(self._timeout):
                await self._make_if_needed()
            self._has_hung = False
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # this task was cancelled; otherwise the summarizer was
            self._count_failure("CancelledError")
        except TimeoutError as error:
            self._timed_out = True
            self._count_failure(type(error).__name__)
        except Exception as error:  # noqa: BLE001 - user code, whose errors must not end a run
            self._count_failure(type(error).__name__)

    def _count_failure(self, reason: str) -> None:
        self.failures += 1
        logger.warning("no summary was made (%s): the view has none until the next turn", reason)

    async def _make_if_needed(self) -> None:
        state = await self._reader.read()
        claimed = await self._claim(state.key)
        if claimed is None:
            return
        try:
            turns = await self._read_turns(claimed)
            summary = await self._summarize(turns, claimed)
            is_stored = await self._store(state.key, claimed, summary)
        except (Exception, asyncio.CancelledError):
            await self._drop_claim(state.key)
            raise
        if is_stored and self._on_summary is not None:
            await self._notify(self._on_summary, state, turns, claimed, summary)

    # --- claims ---

    async def _claim(self, key: str) -> StoredAnchor | None:
        """The stored anchor with our claim; `None` if no summary is needed any more.

        While another owner has a claim that has not expired, wait for its summary.
        """
        wait = _FIRST_WAIT
        while True:
            stored = await self._reader.notes.get(key)
            if stored.anchor is None or not stored.anchor.needs_summary:
                self._reader.forget()  # another owner has made it, or the history has changed
                return None
            claim = stored.anchor.claim
            if claim is None or claim.owner == self._owner or claim.until <= time.time():
                claim = Claim(self._owner, time.time() + self._timeout)
                anchor = replace(stored.anchor, claim=claim)
                claimed = await self._reader.notes.put(key, anchor, stored.version)
                if claimed is not None:
                    return claimed
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT)

    async def _drop_claim(self, key: str) -> None:
        stored = await self._reader.notes.get(key)
        if self._is_ours(stored) and stored.anchor is not None:
            await self._reader.notes.put(key, replace(stored.anchor, claim=None), stored.version)

    def _is_ours(self, stored: StoredAnchor) -> bool:
        claim = stored.anchor.claim if stored.anchor else None
        return claim is not None and claim.owner == self._owner

    # --- the summary ---

    async def _read_turns(self, claimed: StoredAnchor) -> list[Item]:
        turns = await self._reader.history.read_unsummarized(claimed.anchor) if claimed.anchor else None
        if not turns:
            await self._reader.invalidate()  # or else every later attempt would fail in the same way
            raise SummaryFailedError("the turns to summarize have changed")
        return turns

    async def _summarize(self, turns: list[Item], claimed: StoredAnchor) -> StoredSummary:
        assert claimed.anchor is not None
        previous, limit = claimed.anchor.summary, self._strategy.summary_max_tokens
        request = SummaryRequest(turns, previous.text if previous else None, limit, self._session_id())
        result = self._summarizer(request)
        made = await result if inspect.isawaitable(result) else result
        text = made.text if isinstance(made, Summary) else made
        if not isinstance(text, str) or not text.strip():
            raise SummaryFailedError("the summarizer returned nothing")
        return StoredSummary(
            shorten(text, limit, self._tokenizer),
            claimed.anchor.cut,
            previous.version + 1 if previous else 1,
            made.model if isinstance(made, Summary) else None,
        )

    async def _store(self, key: str, claimed: StoredAnchor, summary: StoredSummary) -> bool:
        """Store a summary; `False` if the history has changed meanwhile."""
        stored = claimed
        for _ in range(_ATTEMPTS):
            # If only the cut has moved on, our claim is still there and the summary is still valid.
            if stored.anchor is None or not self._is_ours(stored):
                break
            written = await self._reader.notes.put(key, stored.anchor.with_summary(summary), stored.version)
            if written is not None:
                self._reader.cache(key, written)
                return True
            stored = await self._reader.notes.get(key)
        self._reader.forget()
        return False

    async def _notify(
        self,
        callback: Callback,
        state: ViewState,
        turns: list[Item],
        claimed: StoredAnchor,
        summary: StoredSummary,
    ) -> None:
        assert claimed.anchor is not None
        anchor, window = claimed.anchor, state.window
        previous = summary_items(anchor.summary.text, self._strategy) if anchor.summary else []
        shown = len(window.starts)
        covered = range(anchor.summarized.turns + 1, anchor.cut.turns + 1)
        event = describe_change(
            "summary",
            self._session_id(),
            View(shown + len(covered), [*window.head, *previous, *turns, *window.items]),
            View(shown, [*window.head, *summary_items(summary.text, self._strategy), *window.items]),
            trigger=anchor.trigger,
            turns=covered,
            changed=turns,
            tokenizer=self._tokenizer,
            summary=summary,
        )
        await notify(callback, event)


def shorten(text: str, max_tokens: int, tokenizer: Tokenizer | None = None) -> str:
    """The text in at most `max_tokens` tokens, cut between words if it is too long."""
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
