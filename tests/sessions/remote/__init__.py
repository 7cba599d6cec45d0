"""Sessions in a service."""
