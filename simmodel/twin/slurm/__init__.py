"""Slurm as a source of the twin: what its commands and its REST interface tell, read and never written."""
