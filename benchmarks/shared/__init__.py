"""What the suites on sessions share: items, stores, single calls, and many tasks at once."""
