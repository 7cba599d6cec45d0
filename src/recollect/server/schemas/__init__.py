"""The bodies and queries of requests, and the bodies of responses, with examples."""
