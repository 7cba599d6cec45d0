"""Clients in other languages, against the real service."""
