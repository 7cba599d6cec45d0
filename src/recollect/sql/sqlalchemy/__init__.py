"""The engine for PostgreSQL, and for any other database that SQLAlchemy reaches."""
