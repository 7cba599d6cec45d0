"""Facts in texts: clauses that state one fact each, slots, stances, and texts about health."""
