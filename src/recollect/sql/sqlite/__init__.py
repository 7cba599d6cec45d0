"""The engine for SQLite files: one writer and several readers per file and process."""
