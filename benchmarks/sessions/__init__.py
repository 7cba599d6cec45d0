"""Sessions on SQLite: ours, the Agents SDK's, and the bare driver."""
