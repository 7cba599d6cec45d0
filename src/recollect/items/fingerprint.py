"""A fingerprint: the same for the same item, also after its content was rewritten."""

import hashlib
import json

from .shapes import Item, type_of

# Models without ids of their own get this one from the Agents SDK: it names nothing.
PLACEHOLDER_IDS = ("", "__fake_id__")


def fingerprint(item: Item) -> str:
    """Type and id where the item has a stable id, else a hash of its canonical JSON."""
    for field in ("id", "call_id"):
        stable = item.get(field)
        if isinstance(stable, str) and stable not in PLACEHOLDER_IDS:
            return f"{type_of(item)}:{stable}"
    canonical = json.dumps({**item, "type": type_of(item)}, sort_keys=True, separators=(",", ":"))
    return f"{type_of(item)}#{hashlib.sha256(canonical.encode()).hexdigest()}"
