"""Slurm as the scheduler that a twin reads by commands or its REST interface, and acts on by ``scontrol update``."""
