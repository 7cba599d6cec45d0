"""Items as a person reads them: messages whole, a tool call and its output on one line."""

import json
from collections.abc import Iterator, Sequence

from ..items import Item, is_call, is_output, is_reasoning, pair_calls, role_of, text_of, type_of
from .output import indented, one_line, painted

_FOLDED = 100  # characters of arguments, and of an output
_INDENT = " " * 4


def told_items(items: Sequence[Item], *, unfold: bool = False) -> list[str]:
    """Lines about items, safe to be shown. Reasoning is left out unless all is unfolded."""
    pairs = pair_calls(items)
    answered = {place for places in pairs.outputs_of.values() for place in places}
    lines: list[str] = []
    for place, item in enumerate(items):
        if is_call(item):
            outputs = [items[each] for each in pairs.outputs_of.get(place, [])]
            lines += _unfolded(item, outputs) if unfold else [_folded(item, outputs)]
        elif place not in answered and (unfold or not is_reasoning(item)):
            lines += _message(item) if role_of(item) is not None else [_other(item)]
    return lines


def _message(item: Item) -> Iterator[str]:
    yield painted(one_line(role_of(item) or ""), "bold")
    yield indented(text_of(item), _INDENT)


def _folded(call: Item, outputs: Sequence[Item]) -> str:
    answer = " → ".join(_shortened(text_of(output)) for output in outputs) or "no output"
    return painted(f"{_INDENT}⚙ {_named(call)}({_shortened(_arguments(call))}) → {answer}", "dim")


def _unfolded(call: Item, outputs: Sequence[Item]) -> Iterator[str]:
    yield painted(f"{_INDENT}⚙ {_named(call)}", "dim")
    yield indented(_arguments(call), _INDENT * 2)
    for output in outputs:
        yield painted(f"{_INDENT}→", "dim")
        yield indented(text_of(output), _INDENT * 2)


def _other(item: Item) -> str:
    kind = "tool output without its call" if is_output(item) else one_line(type_of(item))
    text = _shortened(text_of(item))
    return painted(f"{_INDENT}[{kind}{': ' + text if text else ''}]", "dim")


def _named(call: Item) -> str:
    return one_line(str(call.get("name") or type_of(call)))


def _arguments(call: Item) -> str:
    """The arguments of a call, whatever it calls them."""
    given = next((call[name] for name in ("arguments", "action", "input") if name in call), "")
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _shortened(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _FOLDED else f"{line[:_FOLDED]}…"
