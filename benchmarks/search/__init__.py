"""Search: how well it ranks (LoCoMo), and how fast it finds the nearest vectors. Run by `recollect bench`."""
