"""What coding agents do: their transcripts as conversations and sessions, and hooks that give memory back."""
