"""The engine for PostgreSQL, and for other databases that SQLAlchemy supports."""
