"""Reading what a view needs of a history: all of it, or what comes after an anchor."""

from itertools import takewhile

from ..items import Item, is_user_message
from ..sessions.protocol import Positioned, PositionedItem, Session, with_ability
from .anchors import Anchor, digest
from .scans import Scan
from .windows import Positions, Window, end_of_head, split_history


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
