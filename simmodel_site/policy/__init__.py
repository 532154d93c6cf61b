"""Slurm's own scheduler as a policy: slurmctld's main loop and backfill loop, each with its own clock."""
