"""Readers: one small module for each system, from its files to records."""
