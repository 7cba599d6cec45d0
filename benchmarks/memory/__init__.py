"""What long-term memory costs: recording conversations, learning from them, and a memory that grows."""
