"""What working memory costs, and what it saves."""
