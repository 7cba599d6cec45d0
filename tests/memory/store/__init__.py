"""Tests of recording, and of what is known."""
