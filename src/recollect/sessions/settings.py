"""Settings of a session, interchangeable with those of the Agents SDK."""

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidTypeError, InvalidValueError

_MOST = 2**62  # items: more than any database counts to


class SessionSettings(dict[str, Any]):
    """Defaults for a session's calls; an explicit argument of a call wins.

    It is a mapping too, because the Agents SDK's wrappers take settings that are a mapping or their own.
    """

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit=check_limit(limit))

    @property
    def limit(self) -> int | None:
        """How many items `get_items` gives at most, the newest; `None` for all."""
        limit: int | None = self["limit"]
        return limit

    @limit.setter
    def limit(self, limit: int | None) -> None:
        self["limit"] = check_limit(limit)

    def resolve(self, override: Any) -> "SessionSettings":
        """These settings with those of `override` laid over them, where it gives any."""
        limit = limit_of(override)
        return self if limit is None else SessionSettings(limit)

    def to_dict(self) -> dict[str, Any]:
        """The settings as a plain dictionary."""
        return dict(self)


def settings_of(settings: Any) -> Any:
    """The settings as an object with a `limit` that can be set. The objects of the SDK stay as they are."""
    limit = limit_of(settings)
    has_attribute = settings is not None and hasattr(settings, "limit")
    return settings if has_attribute else SessionSettings(limit)


def limit_of(settings: Any) -> int | None:
    """The limit in settings of ours, of the SDK, in a mapping, or in none at all."""
    if settings is None:
        return None
    if isinstance(settings, Mapping):
        unknown = set(settings) - {"limit"}
        if unknown:
            raise InvalidValueError(
                f"unknown session settings, only limit is known: {sorted(map(str, unknown))}"
            )
        return check_limit(settings.get("limit"))
    return check_limit(settings.limit)


def check_limit(limit: int | None) -> int | None:
    """The limit if it makes sense; a negative one is a `ValueError`."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise InvalidTypeError(f"limit must be a whole number or None, not {limit!r}")
    if limit is not None and limit < 0:
        raise InvalidValueError(f"limit must not be negative, and it is {limit}")
    return None if limit is None else min(limit, _MOST)
