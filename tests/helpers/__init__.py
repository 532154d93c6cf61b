"""Shared by the tests: drawn cases, small systems, functions that run them, and paths."""
