"""`StrategySession`: a session that returns a view of its history. The stored history stays whole."""

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
from .events import Callback, View, describe_change, notify
from .placeholders import compact_items
from .reader import ViewReader, ViewState, run_in_thread_if_long
from .summarizers.protocol import Summarizer
from .summary_maker import SummaryMaker
from .values import Compact, Strategy, Summarize
from .views import build_view
from .windows import Window, split_at

logger = logging.getLogger(__name__)

_NOT_PASSED_ON = ("wrapped", "close", "release")


class StrategySession(SessionWrapper):
    """Wraps a session: `get_items()` returns the strategy's view of it. All other methods pass through.

    The stored history is never rewritten. `get_items` with a limit, `pop_item` and readers of the wrapped
    session see it whole. Where the history was cut is stored in a note of the session, so that the cost of a
    turn does not depend on the length of the history. A strategy may be given as its configuration, such as
    `{"mode": "trim", "max_user_turns": 20}`.

    A strategy that summarizes makes the summary in the background, and a read waits for it at most
    `summary_timeout` seconds. If there is no summary by then, the view has none, and the next turn tries
    again.
    """

    keeps_abilities = True

    shows_views = True
    """A wrapper around this session must not take a view for the history."""

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
        self._reader: ViewReader | None = None
        self._maker: SummaryMaker | None = None
        if strategy is None:
            return
        self.session_settings = self._own_settings
        self._reader = ViewReader(session, strategy, tokenizer)
        if isinstance(strategy, Summarize):
            self._maker = SummaryMaker(
                self._reader,
                strategy,
                lambda: self.session_id,
                summarizer=summarizer or _default_summarizer(),
                timeout=summary_timeout,
                on_summary=on_summary,
                tokenizer=tokenizer,
            )

    @property
    def summary_failures(self) -> int:
        """How often a summary was needed and could not be made."""
        return self._maker.failures if self._maker else 0

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None, **options: Any) -> Items:
        """The strategy's view of the history; with a limit the newest items as they are stored.

        The Runner passes its context as `wrapper`, and it reaches the wrapped session. Other options of the
        wrapped session, such as a branch or a turn, return items as they are stored.
        """
        self._check_open()
        limit = self._effective_limit(limit)
        context = self._context(wrapper)
        if self.strategy is None or limit is not None or options:
            return await self.wrapped.get_items(limit, **options, **context)
        await self.begin_run(wrapper)
        return await self._build_view(await self._read_state())

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Remove the newest item and return it, `None` if there is none."""
        self._check_open()
        return await self.wrapped.pop_item(**self._context(wrapper))

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:
        """Append a batch: all of its items or none."""
        self._check_open()
        await self.wrapped.add_items(items, **self._context(wrapper))
        self.prepare_summary(items)

    def prepare_summary(self, added: Items) -> None:
        """Start to make the summary that items need which were added, so that the next turn finds it."""
        if self._maker and self._reader and self._reader.will_be_cut(added):
            self._maker.start()

    async def clear_session(self, *, wrapper: Any = None, **options: Any) -> None:
        """Remove all items and the session itself."""
        self._check_open()
        if self._maker:
            await self._maker.cancel()
        await self.wrapped.clear_session(**options, **self._context(wrapper))
        if self._reader:
            self._reader.forget()

    async def aclose(self) -> None:
        """Wait for a summary that is being made, up to its timeout; then close both sessions."""
        if self._maker and not self._closed:
            await self._maker.finish()
        await super().aclose()

    async def checkpoint(self) -> bool:
        """Replace the stored items by the view, in one transaction. The items that were cut are lost.

        Returns whether anything was replaced: `False` if nothing was cut or a summary could not be made.
        """
        self._check_open()
        rewritable = require_ability(self.wrapped, Rewritable)
        state = await self._read_state() if self.strategy else None
        anchor = state.anchor if state else None
        if anchor is None or (self._maker and anchor.needs_summary):
            return False
        windows: list[Window] = []

        def change(items: list[Item]) -> list[Item]:
            windows[:] = filter(None, [split_at(items, anchor)])
            return _view_of_window(windows[0], self.strategy, anchor) if windows else items

        await rewritable.transform_items(change)
        return bool(windows)

    def __getattr__(self, name: str) -> Any:
        """All other attributes of the wrapped session, unchanged."""
        if name.startswith("_") or name in _NOT_PASSED_ON:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        passed_on = getattr(self.wrapped, name)
        if callable(passed_on) and own_method(self.wrapped, name) is None:
            raise AttributeError(f"{type(self.wrapped).__name__!r} object has no {name!r} of its own")
        return partial(self._revise, passed_on) if name == "revise_items" else passed_on

    async def _read_state(self) -> ViewState:
        """The state of the view. If it needs a summary, wait for that first."""
        assert self._reader is not None
        state = await self._reader.read()
        if (
            state.before is not None
            and self._on_compaction is not None
            and isinstance(self.strategy, Compact)
        ):
            await self._notify_compaction(self._on_compaction, self.strategy, state, state.before)
        if self._maker is not None and state.anchor is not None and state.anchor.needs_summary:
            await self._maker.wait()
            state = await self._reader.read()
        return state

    async def _build_view(self, state: ViewState) -> list[Item]:
        length = len(state.window.behind) + len(state.window.items)
        return await run_in_thread_if_long(
            length, lambda: _view_of_window(state.window, self.strategy, state.anchor)
        )

    async def _revise(self, revise_items: Callable[..., Awaitable[None]], *args: Any, **kwargs: Any) -> None:
        """Revise items, then invalidate the anchor: a revised item may be before the cut."""
        await revise_items(*args, **kwargs)
        if self._reader is not None:
            await self._reader.invalidate()

    async def _notify_compaction(
        self, callback: Callback, strategy: Compact, state: ViewState, before: Window
    ) -> None:
        assert state.anchor is not None
        passed = len(before.starts) - len(state.window.starts)
        last = state.anchor.cut.turns
        items = before.items[: before.start_of(passed)]
        compacted = compact_items(items, len(items), strategy)
        event = describe_change(
            "compaction",
            self.session_id,
            View(len(before.starts), build_view(before, strategy)),
            View(len(state.window.starts), build_view(state.window, strategy)),
            trigger=state.anchor.trigger,
            turns=range(last - passed + 1, last + 1),
            changed=[item for item, after in zip(items, compacted, strict=True) if item != after],
            tokenizer=self._tokenizer,
        )
        await notify(callback, event)


def _view_of_window(window: Window, strategy: Strategy | None, anchor: Anchor | None) -> list[Item]:
    """The view of a window; all of its items if nothing was cut."""
    if anchor is None or strategy is None:
        return window.head + window.behind + window.items
    return build_view(window, strategy, anchor.summary.text if anchor.summary else None)


class _StrategySettings(SessionSettings):
    """Settings without a limit. They log a warning if the settings of a run add one."""

    def __init__(self) -> None:
        super().__init__()
        self._has_warned = False

    def resolve(self, override: Any) -> SessionSettings:
        """These settings, overridden by those of `override`."""
        if limit_of(override) is not None and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "limit in the session settings of a run bypasses the strategy: the model sees the newest"
                " items as they are stored. Remove the limit to use the strategy's view"
            )
        return super().resolve(override)


def _check_arguments(strategy: Strategy | None, settings: object, summary_timeout: float) -> None:
    if strategy is not None and limit_of(settings) is not None:
        raise ValueError(
            "session_settings of the session has a limit, which would bypass the strategy: remove the limit"
        )
    if isinstance(summary_timeout, bool) or not isinstance(summary_timeout, int | float):
        raise TypeError(f"summary_timeout must be a number of seconds, not {summary_timeout!r}")
    if not 0 < summary_timeout < math.inf:
        raise ValueError(f"summary_timeout must be more than 0 seconds, and it is {summary_timeout}")


def _default_summarizer() -> Summarizer:
    """The summarizer that needs no model."""
    from .summarizers import ExtractiveSummarizer

    return ExtractiveSummarizer()
