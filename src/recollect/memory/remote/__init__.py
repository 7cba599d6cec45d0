"""Long-term memory in a Recollect service: the parts of a store, over HTTP."""
