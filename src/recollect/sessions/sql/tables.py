"""The names of the tables."""

import re
from dataclasses import dataclass, field
from functools import lru_cache

_TAKEN = ("message_structure", "turn_usage")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


@dataclass(frozen=True)
class Tables:
    """The names of the tables, checked, and those of ours that follow from them."""

    sessions: str = "agent_sessions"
    messages: str = "agent_messages"
    advanced: bool = False
    """Whether those for branches and usage belong to them."""
    one_pair: bool = True
    """Whether the database holds but one pair of such tables: in the SDK's files, they have fixed names."""
    metadata: str = field(init=False)
    batches: str = field(init=False)
    leases: str = field(init=False)
    notes: str = field(init=False)
    branches: str = field(init=False)
    runs: str = field(init=False)
    structure: str = field(init=False)
    usage: str = field(init=False)

    def __post_init__(self) -> None:
        for name in (self.sessions, self.messages):
            if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
                raise ValueError(
                    f"{name!r} is not a table name: use up to 40 letters, digits and underscores"
                )
            if name.lower().startswith(("sqlite_", "recollect_", "pg_")) or name.lower() in _TAKEN:
                raise ValueError(f"table name {name!r} is reserved")
        if self.sessions.lower() == self.messages.lower():
            raise ValueError(f"sessions and messages need two tables, and both are {self.sessions!r}")
        object.__setattr__(self, "metadata", f"recollect_{self.sessions}_metadata")
        object.__setattr__(self, "leases", f"recollect_{self.sessions}_leases")
        object.__setattr__(self, "notes", f"recollect_{self.sessions}_notes")
        object.__setattr__(self, "branches", f"recollect_{self.sessions}_branches")
        object.__setattr__(self, "runs", f"recollect_{self.sessions}_runs")
        fixed = self.one_pair or (self.sessions, self.messages) == ("agent_sessions", "agent_messages")
        structure, usage = f"recollect_{self.messages}_structure", f"recollect_{self.sessions}_usage"
        object.__setattr__(self, "structure", _TAKEN[0] if fixed else structure)
        object.__setattr__(self, "usage", _TAKEN[1] if fixed else usage)
        object.__setattr__(self, "batches", f"recollect_{self.messages}_batches")


@lru_cache(maxsize=64)
def tables_named(sessions: str, messages: str, advanced: bool = False, one_pair: bool = True) -> Tables:
    """The tables of these names; checked once."""
    return Tables(sessions, messages, advanced, one_pair)
