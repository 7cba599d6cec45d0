"""Long-term memory in a service: the same contract as a local store, and what a network adds."""
