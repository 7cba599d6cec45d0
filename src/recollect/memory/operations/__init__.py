"""The operations of long-term memory, each described once. All faces follow from these descriptions."""
