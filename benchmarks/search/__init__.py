"""Search: how well it finds answers, and how fast it finds the nearest vectors. Run by `recollect bench`."""
