"""What the processes of a campaign are told to do."""

import msgspec


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one process is to do: so many operations as a client, or with none to learn as a worker."""

    url: str
    journal: str
    seed: int = 0
    client: int = 0
    life: int = 0
    operations: int = 0
    tasks: int = 4
    is_worker: bool = False
    searches_by_meaning: bool = True
    provider: str = ""
    """The URL of a provider of models; without one, learning goes by rule and embedding is local."""
    api_key: str = ""


def read_order(line: str) -> Order:
    """An order, as it is given."""
    return msgspec.json.decode(line, type=Order)


def write_order(order: Order) -> str:
    """An order, as it is given in a line."""
    return msgspec.json.encode(order).decode()
