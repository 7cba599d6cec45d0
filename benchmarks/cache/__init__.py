"""What memory costs in a prompt that a provider caches: a simulation with the published rules."""
