"""Recollect."""
