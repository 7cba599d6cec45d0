"""The checkpointer for LangGraph next to LangGraph's own savers."""
