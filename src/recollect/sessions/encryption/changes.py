"""The effect of a change on the envelopes of an encrypted history.

These functions are pure and work on decrypted items. The session that stores the envelopes applies the result
in one atomic step.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from ...items import Item
from ..changes import as_stored, revise, rewrite
from .reader import now
from .vault import UNDECRYPTED, DecryptedItems, Vault, is_envelope, visible_structure_of

Revised: TypeAlias = list[Item | None]


def transform_history(
    vault: Vault, decrypted: DecryptedItems, since: bytes, change: Callable[[list[Item]], list[Item]]
) -> list[Item]:
    """Return the envelopes after `change` is applied to the readable items.

    An unchanged item keeps its envelope, and with it its age. Unreadable items stay where they are.
    """
    readable = [n for n in _with_items(decrypted) if decrypted.stamps[n] >= since]
    items = _items_of(decrypted, readable)
    old = dict(zip(readable, map(as_stored, items), strict=True))
    numbers = {id(item): n for n, item in zip(readable, items, strict=True)}
    given_back: list[int | None] = []

    def record_and_change(items: list[Item]) -> list[Item]:
        changed = list(change(items))
        given_back[:] = [numbers.get(id(item)) for item in changed]
        return changed

    same, rest = rewrite(items, record_and_change)
    new = [*(old[n] for n in readable[:same]), *rest]
    origins = _origins_of(new, given_back, old)
    made = iter(_encrypt_now(vault, [text for text, n in zip(new, origins, strict=True) if n is None]))
    envelopes = [next(made) if n is None else decrypted.stored[n] for n in origins]
    return _merge(decrypted.stored, set(readable), origins, envelopes)


def _origins_of(new: list[str], given_back: list[int | None], old: dict[int, str]) -> list[int | None]:
    """Return the old index of each new text: of the same object, else of an equal item, else `None`."""
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


def _merge(
    stored: list[Item], readable: set[int], origins: list[int | None], envelopes: list[Item]
) -> list[Item]:
    """Merge the new envelopes with the unreadable items, which stay after the same items as before."""
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


def replace_history(decrypted: DecryptedItems, envelopes: list[Item]) -> list[Item]:
    """Return the history with the given envelopes instead of all items that a key decrypts."""
    return [
        *(decrypted.stored[n] for n, cipher in enumerate(decrypted.ciphers) if cipher is None),
        *envelopes,
    ]


def revise_history(
    vault: Vault, decrypted: DecryptedItems, change: Callable[[list[Item]], Revised]
) -> Revised:
    """Return the history after `change` has revised the items that a key decrypts. Items keep their age."""
    numbers = _with_items(decrypted)
    revision = revise(_items_of(decrypted, numbers), change)
    texts = {numbers[n]: text.encode() for n, text in revision.texts.items()}
    result = _reencrypt(vault, decrypted, texts)
    for n in revision.removed:
        result[numbers[n]] = None
    return result


def rotate_history(vault: Vault, decrypted: DecryptedItems, include_plaintext: bool) -> tuple[Revised, int]:
    """Encrypt all items that a key decrypts with the first key, at the same age.

    Return it and the number changed.
    """
    texts = {
        n: decrypted.plaintexts[n] for n in _with_items(decrypted) if not _is_current(vault, decrypted, n)
    }
    if include_plaintext:
        plain = (n for n, stored in enumerate(decrypted.stored) if not is_envelope(stored))
        texts |= {n: as_stored(decrypted.stored[n]).encode() for n in plain}
    return _reencrypt(vault, decrypted, texts), len(texts)


def _is_current(vault: Vault, decrypted: DecryptedItems, number: int) -> bool:
    (structure,) = vault.structures_of([decrypted.plaintexts[number]])
    return (
        decrypted.ciphers[number] is vault.current
        and visible_structure_of(decrypted.stored[number]) == structure
    )


def purge_history(decrypted: DecryptedItems, since: bytes) -> tuple[Revised, int]:
    """Return the history without the items encrypted before a time, and how many were removed."""
    kept = [
        stored if stamp == UNDECRYPTED or stamp >= since else None
        for stored, stamp in zip(decrypted.stored, decrypted.stamps, strict=True)
    ]
    return kept, kept.count(None)


def _reencrypt(vault: Vault, decrypted: DecryptedItems, texts: dict[int, bytes]) -> Revised:
    """Return the history with new envelopes for these texts, at the same age.

    A plain item gets the current time.
    """
    result: Revised = [*decrypted.stored]
    stamps = [decrypted.stamps[n] or now() for n in texts]
    for number, envelope in zip(texts, vault.encrypt([*texts.values()], stamps), strict=True):
        result[number] = envelope
    return result


def _encrypt_now(vault: Vault, texts: list[str]) -> list[Item]:
    return vault.encrypt([text.encode() for text in texts], [now()] * len(texts))


def _with_items(decrypted: DecryptedItems) -> list[int]:
    return [n for n, item in enumerate(decrypted.items) if item is not None]


def _items_of(decrypted: DecryptedItems, numbers: Sequence[int]) -> list[Item]:
    return [cast(Item, decrypted.items[n]) for n in numbers]
