"""Long-term memory under faults: what was acknowledged is there once, is learned once, and can be erased."""
