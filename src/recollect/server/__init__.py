"""The service: conversations, memories and chat over HTTP."""
