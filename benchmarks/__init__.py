"""How fast recollect is, beside its peers and beside the bare drivers. Run it: `python -m benchmarks`."""
