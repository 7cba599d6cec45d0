"""Checkpoints of LangGraph under faults."""
