"""The mirror: the state of a cluster that a scheduler outside runs, kept from what is told of its jobs and nodes."""
