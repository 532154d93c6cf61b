"""Calibration: records, losses, searches for the values of parameters, and how well a record fixes them."""
