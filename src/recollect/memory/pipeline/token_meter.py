"""The token meter: limits the calls of models per tenant, and counts their tokens."""

import logging
from typing import Protocol

_log = logging.getLogger("recollect.memory")

_AFTER_FAULT = 5.0  # seconds until a meter that failed is called again
_LONGEST_WAIT = 3600.0  # seconds: after that the meter is called again, since its limit may have been raised


class TokenMeter(Protocol):
    """Counts the tokens of each tenant, and says how long a tenant must wait for the next call."""

    async def wait(self, tenant: str) -> float:
        """The seconds for which no model may be called for this tenant; 0 if one may be called now."""
        ...

    async def spent(self, tenant: str, tokens: int) -> None:
        """Count the tokens of a call for this tenant, whether it succeeded or not."""
        ...


class GuardedMeter:
    """A meter as runs use it: optional, and its errors never end a run."""

    def __init__(self, meter: TokenMeter | None) -> None:
        self._meter = meter

    async def wait(self, tenant: str) -> float:
        """The seconds for which no model may be called. A meter that fails allows no call for a while."""
        if self._meter is None:
            return 0.0
        try:
            return min(await self._meter.wait(tenant), _LONGEST_WAIT)
        except Exception as error:  # noqa: BLE001 - a meter is users' code, and the run must go on
            _log.warning("token meter unavailable (%s)", type(error).__name__)
            return _AFTER_FAULT

    async def spent(self, tenant: str, tokens: int) -> None:
        """Count the tokens of a call, if there were any."""
        if self._meter is None or not tokens:
            return
        try:
            await self._meter.spent(tenant, tokens)
        except Exception as error:  # noqa: BLE001 - the result of the run is stored, counted or not
            _log.warning("tokens not counted (%s): %d", type(error).__name__, tokens)
