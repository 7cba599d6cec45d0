"""The soak: a day of mixed traffic in minutes, in which nothing may grow that should not."""
