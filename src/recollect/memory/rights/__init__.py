"""The rights of users over their data: why an entry is known, export, import and erasure."""
