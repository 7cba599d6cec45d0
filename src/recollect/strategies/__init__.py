"""Working memory: the view of a history that the model sees."""
