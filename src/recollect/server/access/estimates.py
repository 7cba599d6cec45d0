"""How many tokens a chat turn is likely to cost, by the recent turns of its tenant in this process."""

from collections import OrderedDict

_MOST_TENANTS = 10_000
_DECAY = 4  # after a cheaper turn, the estimate moves a quarter of the way down


def next_estimate(estimate: int, cost: int) -> int:
    """The estimate after a turn: an expensive turn raises it at once, cheap ones lower it slowly."""
    return max(cost, estimate - (estimate - cost) // _DECAY)


class TurnEstimates:
    """Estimates by tenant; the tenants whose last turn is longest ago are dropped first."""

    def __init__(self, most_tenants: int = _MOST_TENANTS) -> None:
        self._most_tenants = most_tenants
        self._estimates: OrderedDict[str, int] = OrderedDict()

    def get(self, tenant: str) -> int | None:
        """The estimate of a tenant; `None` if no turn of it has ended here."""
        return self._estimates.get(tenant)

    def note(self, tenant: str, cost: int) -> None:
        """Take the cost of a turn into account."""
        self._estimates[tenant] = next_estimate(self._estimates.get(tenant, cost), cost)
        self._estimates.move_to_end(tenant)
        if len(self._estimates) > self._most_tenants:
            self._estimates.popitem(last=False)

    def __len__(self) -> int:
        return len(self._estimates)
