"""What the model sees, made of what is stored: pure functions over items."""

from collections.abc import Sequence

from ..items import Item, Tokenizer, estimate_tokens, pair_calls, type_of
from ..sessions.history import repair_items
from .cut import find_cut, limits_of
from .placeholders import compact_items
from .sizes import Sizes
from .values import Compact, Strategy, Summarize
from .windows import Window, end_of_head, split_history


def view_of(
    items: Sequence[Item],
    strategy: Strategy | None,
    *,
    summary: str | None = None,
    tokenizer: Tokenizer | None = None,
) -> list[Item]:
    """What a strategy shows of a whole history; where it summarizes, with this summary of what was cut."""
    if strategy is None:
        return list(items)
    window = split_history(list(items))
    sizes = Sizes(strategy, tokenizer)
    limits = limits_of(strategy)
    if limits.tokens is None:
        cut = find_cut(sizes.unknown(window), limits)
    else:
        cut = find_cut(sizes.of_turns(window), limits, always=estimate_tokens(window.head, tokenizer))
    return show(window.after(cut.turns), strategy, summary) if cut.turns else list(items)


def show(window: Window, strategy: Strategy, summary: str | None = None) -> list[Item]:
    """The view of a window that begins at the cut."""
    if isinstance(strategy, Compact):
        everything = window.head + window.behind + window.items
        return compact_items(everything, len(window.head) + len(window.behind), strategy)
    shown = _whole(window)
    if summary is not None and isinstance(strategy, Summarize):
        head = end_of_head(shown)
        shown[head:head] = summary_items(summary, strategy)
    return shown


def summary_items(summary: str, strategy: Summarize) -> list[Item]:
    """A summary as the model is to read it: marked as what came before, and not as a request."""
    return [
        {"role": "user", "content": strategy.summary_prefix},
        {"role": "assistant", "content": summary},
    ]


def _whole(window: Window) -> list[Item]:
    """The head and the turns, less what lost its partner to the cut."""
    items = window.head + window.items
    if not window.scan.may_be_torn and not (window.head and pair_calls(window.head).open_calls):
        return items
    programs = [item.get("call_id") for item in items if type_of(item) == "program"]
    return repair_items([item for item in items if _caller_of(item) in (None, *programs)])[0]


def _caller_of(item: Item) -> object:
    caller = item.get("caller")
    return caller.get("caller_id") if isinstance(caller, dict) else None
