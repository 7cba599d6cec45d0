"""The SQL foundation: scripts, engines, and tables that are described once for every database."""
