"""When work would start: one more job, the same work under another policy, and a plan that is kept."""
