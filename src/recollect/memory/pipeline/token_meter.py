"""What models cost, told to whoever counts it, and whether they may be asked."""

import logging
from typing import Protocol

_log = logging.getLogger("recollect.memory")

_AFTER_FAULT = 5.0  # seconds until a meter that failed is asked again
_LONGEST_WAIT = 3600.0  # seconds: whoever may go on earlier than was said is not kept for longer


class TokenMeter(Protocol):
    """Counts the tokens of each tenant, and says when one has had enough."""

    async def wait(self, tenant: str) -> float:
        """For how many seconds no model is to be asked for this tenant; 0 if one may be."""
        ...

    async def spent(self, tenant: str, tokens: int) -> None:
        """A call for this tenant has cost so many tokens, whether it came to something or not."""
        ...


class Metered:
    """A meter as runs use it, be there one or not; one that fails ends no run."""

    def __init__(self, meter: TokenMeter | None) -> None:
        self._meter = meter

    async def wait(self, tenant: str) -> float:
        """For how many seconds no model is to be asked; also while the meter does not answer."""
        if self._meter is None:
            return 0.0
        try:
            return min(await self._meter.wait(tenant), _LONGEST_WAIT)
        except Exception as error:  # noqa: BLE001 - a meter is others' code: whatever it raises, the run stays
            _log.warning("the meter of tokens does not answer (%s)", type(error).__name__)
            return _AFTER_FAULT

    async def spent(self, tenant: str, tokens: int) -> None:
        """Tell of the tokens of a call, if there were any."""
        if self._meter is None or not tokens:
            return
        try:
            await self._meter.spent(tenant, tokens)
        except Exception as error:  # noqa: BLE001 - what was learned is kept, whether it is counted or not
            _log.warning("%d tokens could not be counted (%s)", tokens, type(error).__name__)
