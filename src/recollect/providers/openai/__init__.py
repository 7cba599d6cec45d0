"""The chat provider on the OpenAI Agents SDK."""
