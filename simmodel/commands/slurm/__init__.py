"""Schedule as a site's Slurm does: read its files, simulate its schedule, and change its settings."""

__all__ = ["EXAMPLES"]

EXAMPLES = ("simmodel slurm read site", "simmodel slurm replay site --set bf_interval=60")
