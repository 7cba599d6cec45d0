"""What was said: sessions, and the tools around them."""
