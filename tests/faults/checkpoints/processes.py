"""Clients and workers that begin at once: python -m tests.faults.checkpoints.processes."""

from ..memory.processes import serve_orders
from .client import carry_out

if __name__ == "__main__":
    serve_orders(carry_out)
