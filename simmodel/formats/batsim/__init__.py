"""Batsim: its workloads in, its jobs.csv out."""
