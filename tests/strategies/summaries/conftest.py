"""Databases for these tests, as those of the event log have them."""

from ...sessions.events.conftest import empty_postgres, our_postgres, shared, somewhere

__all__ = ["empty_postgres", "our_postgres", "shared", "somewhere"]
