"""Brokers: jobs handed to one of several systems."""
