"""Snapshots: typed states of systems, and their JSON."""
