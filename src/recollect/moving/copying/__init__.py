"""Copies of whole databases, between SQLite and PostgreSQL."""

from .copy import CopyReport, TableReport, copy_database, count_extra_rows

__all__ = ["CopyReport", "TableReport", "copy_database", "count_extra_rows"]
