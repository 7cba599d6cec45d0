"""The path under which the Agents SDK has its further sessions, so that a changed import works."""
