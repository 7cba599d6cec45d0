"""Sessions through SQLAlchemy beside the SDK's and beside bare asyncpg."""
