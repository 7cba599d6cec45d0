"""The names of the tables."""

import re
from dataclasses import dataclass, field
from functools import lru_cache

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


@dataclass(frozen=True)
class Tables:
    """The names of the tables, checked, and those of ours that follow from them."""

    sessions: str = "agent_sessions"
    messages: str = "agent_messages"
    metadata: str = field(init=False)
    batches: str = field(init=False)
    leases: str = field(init=False)

    def __post_init__(self) -> None:
        for name in (self.sessions, self.messages):
            if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
                raise ValueError(
                    f"{name!r} is not a table name: use up to 40 letters, digits and underscores"
                )
            if name.lower().startswith(("sqlite_", "recollect_", "pg_")):
                raise ValueError(f"table name {name!r} is reserved")
        if self.sessions.lower() == self.messages.lower():
            raise ValueError(f"sessions and messages need two tables, and both are {self.sessions!r}")
        object.__setattr__(self, "metadata", f"recollect_{self.sessions}_metadata")
        object.__setattr__(self, "leases", f"recollect_{self.sessions}_leases")
        object.__setattr__(self, "batches", f"recollect_{self.messages}_batches")


@lru_cache(maxsize=64)
def tables_named(sessions: str, messages: str) -> Tables:
    """The tables of these names; checked once."""
    return Tables(sessions, messages)
