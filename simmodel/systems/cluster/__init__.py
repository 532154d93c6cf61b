"""Clusters: jobs on pools of nodes."""
