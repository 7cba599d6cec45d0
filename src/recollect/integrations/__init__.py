"""Frameworks for agents, with memory."""
