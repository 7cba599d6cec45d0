"""A session that shows the model what a strategy lets through, over a log that stays whole."""

import logging
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ..items import Item, Tokenizer
from ..sessions.protocol import Items, Rewritable, Session, own_method, require_ability
from ..sessions.settings import SessionSettings, limit_of
from ..sessions.wrappers import SessionWrapper
from .anchors import Anchor
from .configuration import StrategyConfig, strategy_from_config
from .events import Callback, View, describe_change, tell
from .placeholders import compact_items
from .reader import Look, Looker, in_thread_if_long
from .summarizers.protocol import Summarizer
from .summary_maker import SummaryMaker
from .values import Compact, Strategy, Summarize
from .views import show
from .windows import Window, split_at

logger = logging.getLogger(__name__)

_NOT_PASSED_ON = ("wrapped", "close", "release")


class StrategySession(SessionWrapper):
    """Wraps a session: `get_items()` gives the strategy's view of it, all else is as it was.

    The log is never rewritten. `get_items` with a limit and `pop_item` see it as it is, and so does whoever
    reads the wrapped session. What a view needs to know of older turns is kept beside the log, so that a turn
    costs the same however long the history is. A strategy may be given as its configuration, such as
    `{"mode": "trim", "max_user_turns": 20}`.

    Where the strategy summarizes, the summary is made while the turn goes on, and a read waits for it at most
    `summary_timeout` seconds. If there is none, the view goes without, and the next turn tries again.
    """

    keeps_abilities = True

    shows_views = True
    """What wraps it would keep a view for the history."""

    def __init__(
        self,
        session: Session,
        strategy: StrategyConfig,
        *,
        summarizer: Summarizer | None = None,
        on_summary: Callback | None = None,
        on_compaction: Callback | None = None,
        tokenizer: Tokenizer | None = None,
        summary_timeout: float = 30.0,
    ) -> None:
        super().__init__(session)
        strategy = strategy_from_config(strategy)
        _check_arguments(strategy, self.session_settings, summary_timeout)
        self.strategy = strategy
        self._on_compaction = on_compaction
        self._tokenizer = tokenizer
        self._own_settings = _StrategySettings()
        self._looker: Looker | None = None
        self._maker: SummaryMaker | None = None
        if strategy is None:
            return
        self.session_settings = self._own_settings
        self._looker = Looker(session, strategy, tokenizer)
        if isinstance(strategy, Summarize):
            self._maker = SummaryMaker(
                self._looker,
                strategy,
                lambda: self.session_id,
                summarizer=summarizer or _default_summarizer(),
                timeout=summary_timeout,
                on_summary=on_summary,
                tokenizer=tokenizer,
            )

    @property
    def summary_failures(self) -> int:
        """How often a summary should have been made and was not."""
        return self._maker.failures if self._maker else 0

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None, **options: Any) -> Items:
        """What the strategy shows of the history; with a limit the newest items as they are.

        The Runner passes its context as `wrapper`, which the wrapped session may want to know of. What else
        that takes, such as a branch or a turn, is answered by it, as it is stored.
        """
        self._check_open()
        limit = self._effective_limit(limit)
        context = self._context(wrapper)
        if self.strategy is None or limit is not None or options:
            return await self.wrapped.get_items(limit, **options, **context)
        await self.begin_run(wrapper)
        return await self._shown(await self._look())

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Remove the newest item and return it, `None` if there is none."""
        self._check_open()
        return await self.wrapped.pop_item(**self._context(wrapper))

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:
        """Append a batch, whole or not at all."""
        self._check_open()
        await self.wrapped.add_items(items, **self._context(wrapper))
        if self._maker and self._looker and self._looker.will_be_cut(items):
            self._maker.start()  # so that the summary is there when the next turn asks for it

    async def clear_session(self, *, wrapper: Any = None, **options: Any) -> None:
        """Remove all items and the session itself."""
        self._check_open()
        if self._maker:
            await self._maker.give_up()
        await self.wrapped.clear_session(**options, **self._context(wrapper))
        if self._looker:
            self._looker.forget()

    async def aclose(self) -> None:
        """Wait for a summary that is being made, at most as long as it may take; then close both sessions."""
        if self._maker and not self._closed:
            await self._maker.finish()
        await super().aclose()

    async def checkpoint(self) -> bool:
        """Replace what is stored by what the model sees, in one transaction. What was cut is lost.

        Says whether anything was replaced: not where nothing was cut, nor where a summary could not be made.
        """
        self._check_open()
        rewritable = require_ability(self.wrapped, Rewritable)
        look = await self._look() if self.strategy else None
        anchor = look.anchor if look else None
        if anchor is None or (self._maker and anchor.lags):
            return False
        windows: list[Window] = []

        def change(items: list[Item]) -> list[Item]:
            windows[:] = filter(None, [split_at(items, anchor)])
            return _view(windows[0], self.strategy, anchor) if windows else items

        await rewritable.transform_items(change)
        return bool(windows)

    def __getattr__(self, name: str) -> Any:
        """All else that the wrapped session can do, unchanged."""
        if name.startswith("_") or name in _NOT_PASSED_ON:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        passed_on = getattr(self.wrapped, name)
        if callable(passed_on) and own_method(self.wrapped, name) is None:
            raise AttributeError(f"{type(self.wrapped).__name__!r} object has no {name!r} of its own")
        return partial(self._revise, passed_on) if name == "revise_items" else passed_on

    async def _look(self) -> Look:
        """What the view is made of; where it should have a summary, after waiting for that."""
        assert self._looker is not None
        look = await self._looker.look()
        if look.before is not None and self._on_compaction is not None and isinstance(self.strategy, Compact):
            await self._tell(self._on_compaction, look, look.before)
        if self._maker is not None and look.anchor is not None and look.anchor.lags:
            await self._maker.wait()
            look = await self._looker.look()
        return look

    async def _shown(self, look: Look) -> list[Item]:
        length = len(look.window.behind) + len(look.window.items)
        return await in_thread_if_long(length, lambda: _view(look.window, self.strategy, look.anchor))

    async def _revise(self, revise_items: Callable[..., Awaitable[None]], *args: Any, **kwargs: Any) -> None:
        """What is revised may be behind the cut: what was kept of that is not valid any more."""
        await revise_items(*args, **kwargs)
        if self._looker is not None:
            await self._looker.void()

    async def _tell(self, callback: Callback, look: Look, before: Window) -> None:
        assert isinstance(self.strategy, Compact)
        assert look.anchor is not None
        passed = len(before.starts) - len(look.window.starts)
        last = look.anchor.cut.turns
        items = before.items[: before.start_of(passed)]
        compacted = compact_items(items, len(items), self.strategy)
        event = describe_change(
            "compaction",
            self.session_id,
            View(len(before.starts), show(before, self.strategy)),
            View(len(look.window.starts), show(look.window, self.strategy)),
            trigger=look.anchor.trigger,
            turns=range(last - passed + 1, last + 1),
            concerned=[item for item, after in zip(items, compacted, strict=True) if item != after],
            tokenizer=self._tokenizer,
        )
        await tell(callback, event)


def _view(window: Window, strategy: Strategy | None, anchor: Anchor | None) -> list[Item]:
    """The view of a window; all of it where nothing was cut."""
    if anchor is None or strategy is None:
        return window.head + window.behind + window.items
    return show(window, strategy, anchor.summary.text if anchor.summary else None)


class _StrategySettings(SessionSettings):
    """Settings without a limit, that tell when the Runner is about to lay one over them."""

    def __init__(self) -> None:
        super().__init__()
        self._has_warned = False

    def resolve(self, override: Any) -> SessionSettings:
        """These settings with those of `override` laid over them."""
        if limit_of(override) is not None and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "a limit in the session settings of a run bypasses the strategy: the model sees the newest"
                " items as they are stored. Leave the limit out to have the strategy's view"
            )
        return super().resolve(override)


def _check_arguments(strategy: Strategy | None, settings: object, summary_timeout: float) -> None:
    if strategy is not None and limit_of(settings) is not None:
        raise ValueError(
            "the session has a default limit in its session_settings, which would bypass the strategy:"
            " leave the limit out"
        )
    if isinstance(summary_timeout, bool) or not isinstance(summary_timeout, int | float):
        raise TypeError(f"summary_timeout must be a number of seconds, not {summary_timeout!r}")
    if not 0 < summary_timeout < math.inf:
        raise ValueError(f"summary_timeout must be more than 0 seconds, and it is {summary_timeout}")


def _default_summarizer() -> Summarizer:
    """The one that needs no model."""
    from .summarizers import ExtractiveSummarizer

    return ExtractiveSummarizer()
