"""Long-term memory: what is known about a user, with its evidence."""
