"""The service under load, on loopback: conversations, searches, chats, and memory over time."""
