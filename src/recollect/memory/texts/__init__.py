"""Texts: their terms, and whether two of them say the same."""
