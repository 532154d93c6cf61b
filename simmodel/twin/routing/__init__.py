"""Routing of submissions among real clusters, each with a twin that foretells when a job would end there."""
