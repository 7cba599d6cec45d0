"""Branches, usage and structured queries on SQLite, against the SDK's AdvancedSQLiteSession."""
