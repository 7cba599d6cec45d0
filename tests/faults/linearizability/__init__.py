"""Linearizability: whether what concurrent callers saw of a session can be told one call after another."""
