"""The provider's tables: those of sessions, and the turns of chats."""
