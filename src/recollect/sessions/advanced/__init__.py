"""Sessions with branches, usage and structured queries: one body of logic, on SQLite and PostgreSQL."""
