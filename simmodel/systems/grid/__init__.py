"""Grids: brokers over sites, which have a cluster, a storage and a place in a network."""
