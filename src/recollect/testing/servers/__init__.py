"""Real database servers for tests, on free loopback ports, from packages that contain the binaries."""
