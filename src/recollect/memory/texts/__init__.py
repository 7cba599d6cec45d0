"""Texts: the terms of a text, and whether two texts state the same."""
