"""The SQL foundation: scripts, engines, and tables described once for every database."""
