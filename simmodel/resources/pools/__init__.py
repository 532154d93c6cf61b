"""Pools: processors, hosts and nodes that jobs are allocated, and the profiles and promises of backfilling."""
