"""The operations of the service: logs, metrics, spans, readiness, upkeep, start and end."""
