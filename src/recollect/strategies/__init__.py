"""Working memory: what the model sees of a history."""
