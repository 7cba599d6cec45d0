"""Tests of the memory store."""
