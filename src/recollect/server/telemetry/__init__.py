"""What a running service tells of itself: logs, metrics and spans, never contents."""
