"""Pages of results: one HTML file that shows a run and needs nothing else, with its script and its style."""
