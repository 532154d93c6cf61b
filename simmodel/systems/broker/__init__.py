"""Brokers: systems that hand each job to one of several systems."""
