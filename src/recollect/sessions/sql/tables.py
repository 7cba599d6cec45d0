"""The names of the tables of sessions."""

import re
from dataclasses import dataclass, field
from functools import lru_cache

_SDK_TABLES = ("message_structure", "turn_usage")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


@dataclass(frozen=True)
class Tables:
    """The names of the SDK's two tables, checked, and the names of the others, which follow from them."""

    sessions: str = "agent_sessions"
    messages: str = "agent_messages"
    advanced: bool = False
    """Whether the tables of branches and usage are used."""
    one_pair: bool = True
    """Whether the tables of structure and usage have the SDK's fixed names: a database has them once."""
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
                    f"{name!r} is not a valid table name: use up to 40 letters, digits and underscores"
                )
            if name.lower().startswith(("sqlite_", "recollect_", "pg_")) or name.lower() in _SDK_TABLES:
                raise ValueError(f"table name {name!r} is reserved")
        if self.sessions.lower() == self.messages.lower():
            raise ValueError(f"sessions and messages need two tables, not {self.sessions!r} for both")
        object.__setattr__(self, "metadata", f"recollect_{self.sessions}_metadata")
        object.__setattr__(self, "leases", f"recollect_{self.sessions}_leases")
        object.__setattr__(self, "notes", f"recollect_{self.sessions}_notes")
        object.__setattr__(self, "branches", f"recollect_{self.sessions}_branches")
        object.__setattr__(self, "runs", f"recollect_{self.sessions}_runs")
        fixed = self.one_pair or (self.sessions, self.messages) == ("agent_sessions", "agent_messages")
        structure, usage = f"recollect_{self.messages}_structure", f"recollect_{self.sessions}_usage"
        object.__setattr__(self, "structure", _SDK_TABLES[0] if fixed else structure)
        object.__setattr__(self, "usage", _SDK_TABLES[1] if fixed else usage)
        object.__setattr__(self, "batches", f"recollect_{self.messages}_batches")


@lru_cache(maxsize=64)
def tables_named(sessions: str, messages: str, advanced: bool = False, one_pair: bool = True) -> Tables:
    """The tables of these names, cached: names are checked once."""
    return Tables(sessions, messages, advanced, one_pair)
