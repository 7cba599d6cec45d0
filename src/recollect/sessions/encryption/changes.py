"""What a change to an encrypted history does to its envelopes.

Decided here over what was opened; the session that stores the envelopes carries it out in one step.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from ...items import Item
from ..changes import as_stored, revise, rewrite
from .reader import now
from .vault import SHUT, Opened, Vault, is_envelope, structure_shown_by

Revised: TypeAlias = list[Item | None]


def transformed(
    vault: Vault, opened: Opened, since: bytes, change: Callable[[list[Item]], list[Item]]
) -> list[Item]:
    """The history after `change` was made to what may be read of it.

    An item that stays keeps its envelope, and with it its age. What may not be read stays where it is.
    """
    readable = [n for n in _with_items(opened) if opened.stamps[n] >= since]
    items = _items_of(opened, readable)
    old = dict(zip(readable, map(as_stored, items), strict=True))
    numbers = {id(item): n for n, item in zip(readable, items, strict=True)}
    given_back: list[int | None] = []

    def note_and_change(items: list[Item]) -> list[Item]:
        changed = list(change(items))
        given_back[:] = [numbers.get(id(item)) for item in changed]
        return changed

    same, rest = rewrite(items, note_and_change)
    new = [*(old[n] for n in readable[:same]), *rest]
    origins = _origins_of(new, given_back, old)
    made = iter(_sealed_now(vault, [text for text, n in zip(new, origins, strict=True) if n is None]))
    envelopes = [next(made) if n is None else opened.stored[n] for n in origins]
    return _merged(opened.stored, set(readable), origins, envelopes)


def _origins_of(new: list[str], given_back: list[int | None], old: dict[int, str]) -> list[int | None]:
    """For each new text the number of the old item that it is: the same object, or else one that is equal."""
    left = dict(old)
    origins: list[int | None] = []
    for text, n in zip(new, given_back, strict=True):
        is_unchanged = n is not None and left.get(n) == text
        origins.append(n if is_unchanged else None)
        if is_unchanged:
            del left[cast(int, n)]
    equal = defaultdict(list)
    for n, text in left.items():
        equal[text].append(n)
    for place in reversed(range(len(new))):
        if origins[place] is None and equal[new[place]]:
            origins[place] = equal[new[place]].pop()
    return origins


def _merged(
    stored: list[Item], readable: set[int], origins: list[int | None], envelopes: list[Item]
) -> list[Item]:
    """The new envelopes, and among them what could not be read, after what it stood after."""
    places = {n: place for place, n in enumerate(origins) if n is not None}
    merged: list[Item] = []
    done = 0
    for n, item in enumerate(stored):
        if n not in readable:
            merged.append(item)
        elif places.get(n, -1) >= done:
            merged += envelopes[done : places[n] + 1]
            done = places[n] + 1
    return merged + envelopes[done:]


def replaced(opened: Opened, envelopes: list[Item]) -> list[Item]:
    """The history when all that any key opens has made way for others."""
    return [*(opened.stored[n] for n, cipher in enumerate(opened.ciphers) if cipher is None), *envelopes]


def revised(vault: Vault, opened: Opened, change: Callable[[list[Item]], Revised]) -> Revised:
    """The history after `change` has revised, one by one, what any key opens; items keep their age."""
    numbers = _with_items(opened)
    revision = revise(_items_of(opened, numbers), change)
    texts = {numbers[n]: text.encode() for n, text in revision.texts.items()}
    result = _resealed(vault, opened, texts)
    for n in revision.removed:
        result[numbers[n]] = None
    return result


def rotated(vault: Vault, opened: Opened, include_plaintext: bool) -> tuple[Revised, int]:
    """The history with all that any key opens under the first key, as old as before, and how many changed."""
    texts = {n: opened.plaintexts[n] for n in _with_items(opened) if not _is_current(vault, opened, n)}
    if include_plaintext:
        plain = (n for n, stored in enumerate(opened.stored) if not is_envelope(stored))
        texts |= {n: as_stored(opened.stored[n]).encode() for n in plain}
    return _resealed(vault, opened, texts), len(texts)


def _is_current(vault: Vault, opened: Opened, number: int) -> bool:
    (structure,) = vault.structures_of([opened.plaintexts[number]])
    return opened.ciphers[number] is vault.current and structure_shown_by(opened.stored[number]) == structure


def purged(opened: Opened, since: bytes) -> tuple[Revised, int]:
    """The history without what was encrypted before a time, and how many that were."""
    kept = [
        stored if stamp == SHUT or stamp >= since else None
        for stored, stamp in zip(opened.stored, opened.stamps, strict=True)
    ]
    return kept, kept.count(None)


def _resealed(vault: Vault, opened: Opened, texts: dict[int, bytes]) -> Revised:
    """The history with new envelopes for these texts, as old as those before; plain items count from now."""
    result: Revised = [*opened.stored]
    stamps = [opened.stamps[n] or now() for n in texts]
    for number, envelope in zip(texts, vault.seal([*texts.values()], stamps), strict=True):
        result[number] = envelope
    return result


def _sealed_now(vault: Vault, texts: list[str]) -> list[Item]:
    return vault.seal([text.encode() for text in texts], [now()] * len(texts))


def _with_items(opened: Opened) -> list[int]:
    return [n for n, item in enumerate(opened.items) if item is not None]


def _items_of(opened: Opened, numbers: Sequence[int]) -> list[Item]:
    return [cast(Item, opened.items[n]) for n in numbers]
