"""The databases of these tests, the same as for the event log."""

from ...sessions.events.conftest import empty_postgres, our_postgres, shared, somewhere

__all__ = ["empty_postgres", "our_postgres", "shared", "somewhere"]
