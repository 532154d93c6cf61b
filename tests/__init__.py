"""Tests by the package of simmodel that they test, what they share (helpers), models to hold it against (oracles)."""
