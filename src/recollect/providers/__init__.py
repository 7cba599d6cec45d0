"""What runs agents for the service."""
