"""Who may do what, and how much of it: keys, callers, rates, budgets and the audit log."""
