"""Copies of whole databases, between SQLite and PostgreSQL."""

from .copy import CopyReport, TableReport, copy_database

__all__ = ["CopyReport", "TableReport", "copy_database"]
