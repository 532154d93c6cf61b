"""Pools: processors, hosts and nodes that jobs are allocated, and what backfilling asks of them."""
