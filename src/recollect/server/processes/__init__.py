"""Several server processes on one listening socket, and the supervisor that keeps them running."""
