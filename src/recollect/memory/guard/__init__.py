"""The guard: secrets are masked in entries, and texts that steer the agent are kept out of them."""
