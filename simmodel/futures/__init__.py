"""Forecasts, branches and what-ifs."""
