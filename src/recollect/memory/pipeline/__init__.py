"""The learning pipeline: from a conversation to entries, in three stages, each stored when finished."""
