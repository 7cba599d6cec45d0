"""Agents on the OpenAI Agents SDK, with sessions and memory of ours."""
