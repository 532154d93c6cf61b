"""Clusters: jobs on pools of nodes."""

from simmodel.systems.cluster import destination as destination  # so that brokers know it
