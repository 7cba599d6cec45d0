"""Backups that are made while others write."""
