"""Telemetry of a running service: logs, metrics and spans. None of them contains contents."""
