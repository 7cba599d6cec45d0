"""What requests and answers look like, with examples."""
