"""Sessions: append-only logs of items, and the functions around them."""
