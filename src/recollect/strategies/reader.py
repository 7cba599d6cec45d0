"""Finding what a view is made of: the last cut, what comes after it, and whether it has to move on."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeVar

from ..items import Item, Tokenizer, estimate_tokens, is_user_message
from ..sessions.protocol import Positioned, PositionedItem, Session, with_ability
from ..sql.garbage import pause_garbage_collection
from .anchors import Anchor, AnchorNotes, Kept, Mark, digest, note_key
from .cut import Cut, find_cut, limits_of
from .values import Compact, Strategy
from .views import Sizes, tokens_behind
from .windows import Positions, Scan, Window, end_of_head, split_history

T = TypeVar("T")
logger = logging.getLogger(__name__)

_TRIES = 4
_LONG = 2000  # items: working on more of them would hold up the event loop


@dataclass(frozen=True)
class Look:
    """What one look at a session found."""

    key: str
    window: Window
    """What comes after the cut."""
    kept: Kept
    before: Window | None = None
    """The same before the cut moved, if it did in this look, and was kept."""
    is_kept: bool = True
    """Not where another moved the cut at the same time."""

    @property
    def anchor(self) -> Anchor | None:
        """Where the cut is; `None` where nothing was cut."""
        return self.kept.anchor


class Looker:
    """Looks at one session for one strategy, and remembers where the cut was."""

    def __init__(self, session: Session, strategy: Strategy, tokenizer: Tokenizer | None) -> None:
        self.log = Log(session, whole=isinstance(strategy, Compact))
        self.notes = AnchorNotes(session)
        self._session = session
        self._strategy = strategy
        self._limits = limits_of(strategy)
        self._tokenizer = tokenizer
        self._sizes = Sizes(strategy, tokenizer)
        self._remembered: tuple[str, Kept] | None = None
        self._key_of: tuple[str | None, str] | None = None
        self._turns_seen: int | None = None
        self._tokens_seen = 0
        self._has_warned = False

    async def look(self) -> Look:
        """Where the cut is and what comes after it; the cut moves on if it has to, and that is kept."""
        key = await self._key()
        look = await self._look_once(key)
        for _ in range(_TRIES):
            if look.is_kept:
                self.remember(key, look.kept)
                break
            self._remembered = None  # others moved the cut meanwhile: see what they kept
            look = await self._look_once(key)
        self._turns_seen = len(look.window.starts)
        return look

    def remember(self, key: str, kept: Kept) -> None:
        """What was kept now."""
        self._remembered = key, kept

    def forget(self) -> None:
        """The session is not what it was."""
        self._remembered = self._turns_seen = None

    async def void(self) -> None:
        """What is kept must not be used any more, by nobody."""
        self.forget()
        key = await self._key()
        kept = await self.notes.get(key)
        if kept.version:
            await self.notes.put(key, Anchor(0, Mark()), kept.version)

    def will_be_cut(self, added: list[Item]) -> bool:
        """Whether, as far as is known here, these items make the cut move on."""
        if self._turns_seen is None:
            return False
        self._turns_seen += sum(map(is_user_message, added))
        if self._limits.tokens is not None:
            self._tokens_seen += estimate_tokens(added, self._tokenizer)
            if self._tokens_seen > self._limits.tokens:
                return True
        return self._limits.turns is not None and self._turns_seen > self._limits.turns

    async def _look_once(self, key: str) -> Look:
        kept, window = await self._read(key)
        cut = await self._find_cut(window, kept.anchor)
        if cut.turns and not window.has_positions and self.log.reads_tails:
            window = await self.log.read_from_start()  # now with the positions that an anchor needs
            cut = await self._find_cut(window, None)
        if not cut.turns:
            return Look(key, window, kept)
        anchor = await self._move(window, kept.anchor, cut)
        moved = await self.notes.put(key, anchor, kept.version)
        if moved is None:
            return Look(key, window.after(cut.turns), Kept(anchor, kept.version), is_kept=False)
        return Look(key, window.after(cut.turns), moved, before=window)

    async def _read(self, key: str) -> tuple[Kept, Window]:
        """What is kept and fits, and what comes after it."""
        if self._remembered is not None and self._remembered[0] == key:
            kept = self._remembered[1]
            if kept.anchor is None:
                return kept, await self._read_uncut()
            # A summary is asked for anew each time: it may tell what was removed meanwhile.
            if kept.anchor.summary is None and (window := await self._read_after(kept.anchor)) is not None:
                return kept, window
        kept = await self.notes.get(key)
        if kept.anchor is not None and (window := await self._read_after(kept.anchor)) is not None:
            return kept, window
        return Kept(None, kept.version), await self._read_uncut()

    async def _read_after(self, anchor: Anchor) -> Window | None:
        """What comes after an anchor; `None` if it does not fit, or if an undo took what every cut leaves."""
        window = await self.log.read_after(anchor)
        by_turns = self._limits.turns if anchor.trigger == "turns" else None
        least = self._limits.keep or by_turns or 1
        return None if window is None or len(window.starts) < least else window

    async def _read_uncut(self) -> Window:
        """Everything, in the quickest way that tells what is needed: positions let sizes be remembered."""
        by_size = self._limits.tokens is not None
        return await (self.log.read_from_start() if by_size else self.log.read_whole())

    async def _find_cut(self, window: Window, anchor: Anchor | None) -> Cut:
        if self._limits.tokens is None:
            return find_cut(self._sizes.unknown(window), self._limits)
        sizes = await in_thread_if_long(len(window.items), lambda: self._sizes.of_turns(window))
        always = estimate_tokens(window.head, self._tokenizer) + (anchor.behind if anchor else 0)
        cut = find_cut(sizes, self._limits, always=always, is_cut=anchor is not None)
        self._note_size(cut, self._limits.tokens)
        return cut

    def _note_size(self, cut: Cut, budget: int) -> None:
        self._tokens_seen = cut.tokens or 0
        if self._tokens_seen > budget and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "what a view keeps is about %d tokens, more than its budget of %d", self._tokens_seen, budget
            )

    async def _move(self, window: Window, anchor: Anchor | None, cut: Cut) -> Anchor:
        anchor = anchor or Anchor(len(window.head), Mark())
        passed = window.items[: window.start_of(cut.turns)]
        mark = await in_thread_if_long(len(passed), lambda: window.mark_after(cut.turns, anchor.cut))
        behind = anchor.behind
        if self._limits.tokens is not None:
            behind += tokens_behind(passed, self._strategy, self._tokenizer)
        return replace(anchor, cut=mark, behind=behind, trigger=cut.trigger or anchor.trigger)

    async def _key(self) -> str:
        """Under what key the anchor of the current branch is kept."""
        ask: Any = getattr(self._session, "current_branch", None)
        branch: str | None = await ask() if callable(ask) else None
        if self._key_of is None or self._key_of[0] != branch:
            self._key_of = branch, note_key(self._strategy, branch)
        return self._key_of[1]


async def in_thread_if_long(items: int, work: Callable[[], T]) -> T:
    """The outcome of some work on so many items; where they are many, the event loop goes on meanwhile."""
    return work() if items < _LONG else await asyncio.to_thread(_undisturbed, work)


def _undisturbed(work: Callable[[], T]) -> T:
    with pause_garbage_collection():
        return work()


class Log:
    """A session's history, as far as a view needs it."""

    def __init__(self, session: Session, whole: bool) -> None:
        """`whole`: the view shows the turns behind the cut, too, so that everything is read in any case."""
        self._session = session
        self._seen: tuple[int, PositionedItem | None, Scan] = (0, None, Scan())
        self._positioned = None if whole else with_ability(session, Positioned)

    @property
    def reads_tails(self) -> bool:
        """Whether what comes before an anchor need not be read."""
        return self._positioned is not None

    async def read_whole(self) -> Window:
        """Everything; the positions are the numbers of the items, from 1."""
        return split_history(await self._session.get_items())

    async def read_from_start(self) -> Window:
        """Everything, with the positions that an anchor needs."""
        if self._positioned is None:
            return await self.read_whole()
        rows = await self._positioned.read_after(0)
        items = [item for _, item in rows]
        start = end_of_head(items)
        return Window(items[:start], items[start:], Positions(rows, start))

    async def read_after(self, anchor: Anchor) -> Window | None:
        """What comes after an anchor; `None` if it does not fit the history any more."""
        if self._positioned is None:
            return self._after(await self._session.get_items(), anchor)
        # One item before: whether that is still the one it was decides.
        rows = await self._positioned.read_after(anchor.cut.position - 1)
        if not rows or rows[0].position != anchor.cut.position or digest([rows[0].item]) != anchor.cut.check:
            return None
        items = [item for _, item in rows]
        del items[0]
        scan = self._scan_of(rows, items)
        head = await self._read_head(anchor.head) if anchor.head else []
        return Window(head, items, Positions(rows, 1), scan=scan)

    def _scan_of(self, rows: list[PositionedItem], items: list[Item]) -> Scan:
        """What was seen before, as far as it is still there, and what is new."""
        first, last, scan = self._seen
        if rows[0].position != first or rows[min(scan.count, len(rows) - 1)] != last:
            scan = Scan()
        scan = scan.extended(items)
        self._seen = rows[0].position, rows[-1], scan
        return scan

    async def read_stretch(self, anchor: Anchor) -> list[Item] | None:
        """The turns that were cut and not summarized; `None` if they are not what they were."""
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
        # What was removed meanwhile may have let turns come nearer.
        return list(takewhile(lambda item: not is_user_message(item), (row.item for row in rows)))

    def _after(self, items: list[Item], anchor: Anchor) -> Window | None:
        end = anchor.cut.position
        if not anchor.head < end <= len(items) or digest([items[end - 1]]) != anchor.cut.check:
            return None
        if (
            anchor.summary
            and digest(items[anchor.head : anchor.summarized.position]) != anchor.summarized.digest
        ):
            return None
        return split_history(items, anchor)
