"""Sessions on SQL: one body of logic and of statements for every database."""
