"""A strategy within one run: what the Agents SDK is about to send to the model, held within the budget.

A session's view is made when a run begins. A long run with many tool calls grows beyond it: this is for the
calls of the model in between.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..items import Item, Tokenizer, estimate_text_tokens, is_from_model
from .cut import Limits, find_cut
from .placeholders import compact_items
from .sizes import size_of
from .values import Compact, Strategy, Summarize
from .views import view_of

logger = logging.getLogger(__name__)

_EVERY_TOOL = Compact(trigger_turns=1, keep=1)


def strategy_input_filter(strategy: Strategy, *, tokenizer: Tokenizer | None = None) -> Callable[[Any], Any]:
    """A function for `RunConfig(call_model_input_filter=…)` that holds every call within a strategy's limits.

    Turns are trimmed or compacted as in a session. If the input, with the instructions, is still over the
    budget, the outputs of older tool calls are replaced by placeholders, those of the newest turn too; the
    last step of the model, and what its tools gave back, always stays. A strategy that summarizes leaves the
    turns to the session, which has the summary, and does the rest.
    """
    has_warned = False

    def filtered(data: Any) -> Any:
        nonlocal has_warned
        model_data = data.model_data
        instructions = (tokenizer or estimate_text_tokens)(model_data.instructions or "")
        items, fits = fit_input(model_data.input, strategy, beside=instructions, tokenizer=tokenizer)
        if not fits and not has_warned:
            has_warned = True
            logger.warning(
                "the last step of a run alone is more than the budget of %d tokens", strategy.budget
            )
        return replace(model_data, input=items)

    return filtered


def fit_input(
    items: Sequence[Item], strategy: Strategy, *, beside: int = 0, tokenizer: Tokenizer | None = None
) -> tuple[list[Item], bool]:
    """The input of one call held within a strategy's limits, and whether that could be done.

    `beside` are the tokens that the call costs besides the items.
    """
    shown = list(items) if isinstance(strategy, Summarize) else view_of(items, strategy, tokenizer=tokenizer)
    budget = strategy.budget
    if budget is None:
        return shown, True
    how = strategy if isinstance(strategy, Compact) else _EVERY_TOOL
    starts = [0, *_step_starts(shown)]
    sizes = [size_of(shown[start:end], how, tokenizer) for start, end in pairwise([*starts, len(shown)])]
    cut = find_cut(sizes, Limits(turns=None, tokens=budget, keep=1), always=beside)
    return compact_items(shown, starts[cut.turns], how), (cut.tokens or 0) <= budget


def _step_starts(items: Sequence[Item]) -> list[int]:
    """Where the model spoke or called tools anew, after what others said or gave back."""
    return [
        index
        for index, (before, item) in enumerate(pairwise(items), start=1)
        if is_from_model(item) and not is_from_model(before)
    ]
