"""Reading the part of a session that a view needs: find the last cut, read what follows, move the cut on."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeVar

from ..items import Item, Tokenizer, estimate_tokens, is_user_message
from ..sessions.protocol import Positioned, PositionedItem, Session, with_ability
from ..sql.garbage import pause_garbage_collection
from .anchors import Anchor, AnchorNotes, Mark, StoredAnchor, digest, note_key
from .cut import Cut, find_cut, limits_of
from .values import Compact, Strategy
from .views import Sizes, tokens_behind
from .windows import Positions, Scan, Window, end_of_head, split_history

T = TypeVar("T")
logger = logging.getLogger(__name__)

_ATTEMPTS = 4
_MANY_ITEMS = 2000  # work on more items would block the event loop


@dataclass(frozen=True)
class ViewState:
    """The state of a view after one read of the session."""

    key: str
    window: Window
    """The part of the history after the cut."""
    stored: StoredAnchor
    before: Window | None = None
    """The window before the cut moved, if this read moved it and stored the new anchor."""
    is_stored: bool = True
    """False if another reader stored a new anchor first."""

    @property
    def anchor(self) -> Anchor | None:
        """Where the cut is; `None` if nothing was cut."""
        return self.stored.anchor


class ViewReader:
    """Reads one session for one strategy, and caches where the cut is."""

    def __init__(self, session: Session, strategy: Strategy, tokenizer: Tokenizer | None) -> None:
        self.history = HistoryReader(session, whole=isinstance(strategy, Compact))
        self.notes = AnchorNotes(session)
        self._session = session
        self._strategy = strategy
        self._limits = limits_of(strategy)
        self._tokenizer = tokenizer
        self._sizes = Sizes(strategy, tokenizer)
        self._cached: tuple[str, StoredAnchor] | None = None
        self._key_of: tuple[str | None, str] | None = None
        self._turns_seen: int | None = None
        self._tokens_seen = 0
        self._has_warned = False

    async def read(self) -> ViewState:
        """Read the cut and what follows it. If a limit is exceeded, the cut moves on and is stored."""
        key = await self._key()
        state = await self._read_once(key)
        for _ in range(_ATTEMPTS):
            if state.is_stored:
                self.cache(key, state.stored)
                break
            self._cached = None  # another reader moved the cut: read its anchor
            state = await self._read_once(key)
        self._turns_seen = len(state.window.starts)
        return state

    def cache(self, key: str, stored: StoredAnchor) -> None:
        """Cache an anchor that was just stored."""
        self._cached = key, stored

    def forget(self) -> None:
        """Drop the cache, because the session has changed."""
        self._cached = self._turns_seen = None

    async def invalidate(self) -> None:
        """Replace the stored anchor by an empty one, so that no reader uses it any more."""
        self.forget()
        key = await self._key()
        stored = await self.notes.get(key)
        if stored.version:
            await self.notes.put(key, Anchor(0, Mark()), stored.version)

    def will_be_cut(self, added: list[Item]) -> bool:
        """Whether these items probably make the cut move on. Nothing is read from the session."""
        if self._turns_seen is None:
            return False
        self._turns_seen += sum(map(is_user_message, added))
        if self._limits.tokens is not None:
            self._tokens_seen += estimate_tokens(added, self._tokenizer)
            if self._tokens_seen > self._limits.tokens:
                return True
        return self._limits.turns is not None and self._turns_seen > self._limits.turns

    async def _read_once(self, key: str) -> ViewState:
        stored, window = await self._read_window(key)
        cut = await self._find_cut(window, stored.anchor)
        if cut.turns and not window.has_positions and self.history.reads_tails:
            window = await self.history.read_from_start()  # with the positions that an anchor needs
            cut = await self._find_cut(window, None)
        if not cut.turns:
            return ViewState(key, window, stored)
        anchor = await self._move_anchor(window, stored.anchor, cut)
        moved = await self.notes.put(key, anchor, stored.version)
        if moved is None:
            lost = StoredAnchor(anchor, stored.version)
            return ViewState(key, window.after(cut.turns), lost, is_stored=False)
        return ViewState(key, window.after(cut.turns), moved, before=window)

    async def _read_window(self, key: str) -> tuple[StoredAnchor, Window]:
        """The anchor, if there is a valid one, and what follows it."""
        if self._cached is not None and self._cached[0] == key:
            stored = self._cached[1]
            if stored.anchor is None:
                return stored, await self._read_uncut()
            # A summary is always read again: it may describe items that were removed meanwhile.
            if (
                stored.anchor.summary is None
                and (window := await self._read_after(stored.anchor)) is not None
            ):
                return stored, window
        stored = await self.notes.get(key)
        if stored.anchor is not None and (window := await self._read_after(stored.anchor)) is not None:
            return stored, window
        return StoredAnchor(None, stored.version), await self._read_uncut()

    async def _read_after(self, anchor: Anchor) -> Window | None:
        """The window after an anchor; `None` if the anchor is invalid or an undo left too few turns."""
        window = await self.history.read_after(anchor)
        by_turns = self._limits.turns if anchor.trigger == "turns" else None
        least = self._limits.keep or by_turns or 1
        return None if window is None or len(window.starts) < least else window

    async def _read_uncut(self) -> Window:
        """The whole history. With a token budget it has positions, by which sizes are cached."""
        by_size = self._limits.tokens is not None
        return await (self.history.read_from_start() if by_size else self.history.read_whole())

    async def _find_cut(self, window: Window, anchor: Anchor | None) -> Cut:
        if self._limits.tokens is None:
            return find_cut(self._sizes.unknown(window), self._limits)
        sizes = await run_in_thread_if_long(len(window.items), lambda: self._sizes.of_turns(window))
        always = estimate_tokens(window.head, self._tokenizer) + (anchor.behind if anchor else 0)
        cut = find_cut(sizes, self._limits, always=always, is_cut=anchor is not None)
        self._record_size(cut, self._limits.tokens)
        return cut

    def _record_size(self, cut: Cut, budget: int) -> None:
        self._tokens_seen = cut.tokens or 0
        if self._tokens_seen > budget and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "view exceeds its token budget even after the cut: about %d tokens, budget %d",
                self._tokens_seen,
                budget,
            )

    async def _move_anchor(self, window: Window, anchor: Anchor | None, cut: Cut) -> Anchor:
        anchor = anchor or Anchor(len(window.head), Mark())
        passed = window.items[: window.start_of(cut.turns)]
        mark = await run_in_thread_if_long(len(passed), lambda: window.mark_after(cut.turns, anchor.cut))
        behind = anchor.behind
        if self._limits.tokens is not None:
            behind += tokens_behind(passed, self._strategy, self._tokenizer)
        return replace(anchor, cut=mark, behind=behind, trigger=cut.trigger or anchor.trigger)

    async def _key(self) -> str:
        """The key of the note for the current branch."""
        current_branch: Any = getattr(self._session, "current_branch", None)
        branch: str | None = await current_branch() if callable(current_branch) else None
        if self._key_of is None or self._key_of[0] != branch:
            self._key_of = branch, note_key(self._strategy, branch)
        return self._key_of[1]


class HistoryReader:
    """Reads the part of a history that a view needs: all of it, or what follows an anchor."""

    def __init__(self, session: Session, whole: bool) -> None:
        """`whole`: the view also shows the turns before the cut, so everything is read in any case."""
        self._session = session
        self._scanned: tuple[int, PositionedItem | None, Scan] = (0, None, Scan())
        self._positioned = None if whole else with_ability(session, Positioned)

    @property
    def reads_tails(self) -> bool:
        """Whether items before an anchor need not be read."""
        return self._positioned is not None

    async def read_whole(self) -> Window:
        """The whole history. The positions are the numbers of the items, from 1."""
        return split_history(await self._session.get_items())

    async def read_from_start(self) -> Window:
        """The whole history, with the positions that an anchor needs."""
        if self._positioned is None:
            return await self.read_whole()
        rows = await self._positioned.read_after(0)
        items = [item for _, item in rows]
        start = end_of_head(items)
        return Window(items[:start], items[start:], Positions(rows, start))

    async def read_after(self, anchor: Anchor) -> Window | None:
        """The window after an anchor; `None` if the history before the anchor has changed."""
        if self._positioned is None:
            return self._split_after(await self._session.get_items(), anchor)
        # The item before the window is read too: its digest shows whether the anchor is still valid.
        rows = await self._positioned.read_after(anchor.cut.position - 1)
        if not rows or rows[0].position != anchor.cut.position or digest([rows[0].item]) != anchor.cut.check:
            return None
        items = [item for _, item in rows]
        del items[0]
        scan = self._extend_scan(rows, items)
        head = await self._read_head(anchor.head) if anchor.head else []
        return Window(head, items, Positions(rows, 1), scan=scan)

    def _extend_scan(self, rows: list[PositionedItem], items: list[Item]) -> Scan:
        """The cached scan, if its items are unchanged, extended by the new items."""
        first, last, scan = self._scanned
        if rows[0].position != first or rows[min(scan.count, len(rows) - 1)] != last:
            scan = Scan()
        scan = scan.extended(items)
        self._scanned = rows[0].position, rows[-1], scan
        return scan

    async def read_unsummarized(self, anchor: Anchor) -> list[Item] | None:
        """The turns before the cut that the summary does not cover; `None` if they have changed."""
        start, end = anchor.summarized, anchor.cut
        if self._positioned is None:
            items = (await self._session.get_items())[start.position or anchor.head : end.position]
        else:
            rows = await self._positioned.read_after(start.position)
            items = [row.item for row in rows if row.position <= end.position]
            items = items if start.turns else items[anchor.head :]
        return items if digest(items, start.digest) == end.digest else None

    async def _read_head(self, count: int) -> list[Item]:
        assert self._positioned is not None
        rows = await self._positioned.read_after(0, count)
        # If head items were removed meanwhile, the first `count` rows may include turns.
        return list(takewhile(lambda item: not is_user_message(item), (row.item for row in rows)))

    def _split_after(self, items: list[Item], anchor: Anchor) -> Window | None:
        end = anchor.cut.position
        if not anchor.head < end <= len(items) or digest([items[end - 1]]) != anchor.cut.check:
            return None
        if (
            anchor.summary
            and digest(items[anchor.head : anchor.summarized.position]) != anchor.summarized.digest
        ):
            return None
        return split_history(items, anchor)


async def run_in_thread_if_long(items: int, work: Callable[[], T]) -> T:
    """Run some work directly, or in a thread if it works on many items."""
    return work() if items < _MANY_ITEMS else await asyncio.to_thread(_run_without_collector, work)


def _run_without_collector(work: Callable[[], T]) -> T:
    with pause_garbage_collection():
        return work()
