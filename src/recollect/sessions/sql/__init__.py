"""Sessions on SQL: the same logic and the same statements for every database."""
