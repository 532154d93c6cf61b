"""A site's Slurm from its own files and accounting, its schedule as simulated, and the effect of changed settings."""
