"""The tables of the service itself."""
