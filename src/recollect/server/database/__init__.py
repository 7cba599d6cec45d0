"""The service's own tables: keys, audit log, idempotency keys and token budgets."""
