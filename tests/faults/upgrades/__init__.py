"""Upgrades: databases of every released schema, migrations that are killed, backups while serving."""
