"""Settings of a session, interchangeable with those of the Agents SDK."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass
class SessionSettings:
    """Defaults for a session's calls; an explicit argument of a call wins."""

    limit: int | None = None

    def resolve(self, override: Any) -> "SessionSettings":
        """These settings with those of `override` laid over them, where it gives any."""
        given = coerce_settings(override)
        return self if given.limit is None else replace(self, limit=given.limit)

    def to_dict(self) -> dict[str, Any]:
        """The settings as a plain dictionary."""
        return asdict(self)


def coerce_settings(value: Any) -> SessionSettings:
    """Our settings from ours, the SDK's, a mapping or nothing."""
    if isinstance(value, SessionSettings):
        return value
    if isinstance(value, Mapping):
        unknown = set(value) - {"limit"}
        if unknown:
            raise ValueError(f"unknown session settings: {', '.join(sorted(map(str, unknown)))}")
        return SessionSettings(limit=check_limit(value.get("limit")))
    return SessionSettings(limit=check_limit(getattr(value, "limit", None)))


def check_limit(limit: int | None) -> int | None:
    """The limit if it makes sense; a negative one is a `ValueError`."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise TypeError(f"limit must be a whole number or None, not {limit!r}")
    if limit is not None and limit < 0:
        raise ValueError(f"limit must not be negative, and it is {limit}")
    return limit
