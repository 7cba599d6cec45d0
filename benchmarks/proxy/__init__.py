"""The proxy: what it adds to the time of a call, and whether its memory stays flat."""
