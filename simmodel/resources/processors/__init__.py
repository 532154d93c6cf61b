"""Processors of machines, the queues of their tasks, and the services that they use."""
