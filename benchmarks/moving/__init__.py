"""Imports and copies: their rate and their memory."""
