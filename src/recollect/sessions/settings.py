"""Settings of a session, interchangeable with those of the Agents SDK."""

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidTypeError, InvalidValueError

_MOST = 2**62  # items: more than any database counts to


class SessionSettings(dict[str, Any]):
    """Defaults for the calls of a session. An explicit argument of a call overrides them.

    It is also a mapping, because the Agents SDK's wrappers accept only a mapping or their own class.
    """

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit=check_limit(limit))

    @property
    def limit(self) -> int | None:
        """The maximum number of items that `get_items` returns, the newest; `None` for all."""
        limit: int | None = self["limit"]
        return limit

    @limit.setter
    def limit(self, limit: int | None) -> None:
        self["limit"] = check_limit(limit)

    def resolve(self, override: Any) -> "SessionSettings":
        """Return these settings, overridden by the ones that `override` sets."""
        limit = limit_of(override)
        return self if limit is None else SessionSettings(limit)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a plain dictionary."""
        return dict(self)


def settings_of(settings: Any) -> Any:
    """Return the settings as an object with a writable `limit`.

    Objects of the SDK are returned as they are.
    """
    limit = limit_of(settings)
    has_attribute = settings is not None and hasattr(settings, "limit")
    return settings if has_attribute else SessionSettings(limit)


def limit_of(settings: Any) -> int | None:
    """Return the limit of our settings, the SDK's settings, a mapping, or `None`."""
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
    """Return a valid limit. Raise `ValueError` for a negative one."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise InvalidTypeError(f"limit must be a whole number or None, not {limit!r}")
    if limit is not None and limit < 0:
        raise InvalidValueError(f"limit must not be negative: {limit}")
    return None if limit is None else min(limit, _MOST)
