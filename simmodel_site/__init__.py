"""simmodel beside a production scheduler: a twin that follows it, Slurm's rules as a policy, and a site's files.

A package beside :mod:`simmodel`, which it enters by the doors that are open to all: entry points and public names.
"""
