"""Oracles for the simulator: brute-force schedulers, invariants of machines, closed forms of queues."""
