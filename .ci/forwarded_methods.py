"""An extension of mkdocstrings that documents derived methods as the methods they are derived from.

`MemoryStore.record_conversation = _writer(ConversationWriter.record_conversation)` is a plain attribute for
static analysis. This replaces such attributes by an alias of the method, with its signature and docstring.
"""

from typing import Any

import griffe

STORE = "recollect.memory.store.store.MemoryStore"


class ForwardedMethods(griffe.Extension):
    """Resolves the forwarded methods of `MemoryStore`."""

    def on_class_members(self, *, cls: griffe.Class, **_kwargs: Any) -> None:
        """Replace the forwarded attributes once the class is read."""
        if cls.path != STORE:
            return
        for name, member in list(cls.members.items()):
            value = getattr(member, "value", None)
            if isinstance(value, griffe.ExprCall) and not name.startswith("_"):
                target = value.arguments[0]
                if isinstance(target, griffe.Expr):
                    cls.set_member(name, griffe.Alias(name, target.canonical_path, lineno=member.lineno))
