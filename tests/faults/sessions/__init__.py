"""Sessions under faults: concurrent clients, and a model of what must hold whatever happens to them."""
