"""Machines: tasks on processors."""
