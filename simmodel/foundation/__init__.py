"""What everything stands on: errors, display, entry points, loading, calls by name, units, writing."""
