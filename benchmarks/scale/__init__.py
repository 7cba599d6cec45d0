"""Searches over many users, at sizes that no process holds in memory."""
