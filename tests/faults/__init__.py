"""The promises, proven: seeded work under faults, and what must hold afterwards."""
