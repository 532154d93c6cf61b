"""Utilities for all packages: errors, display, entry points, loading, calls by name, units, writing."""
