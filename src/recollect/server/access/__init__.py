"""Access control: keys, authentication, origins, rate and concurrency limits, budgets, the audit log."""
