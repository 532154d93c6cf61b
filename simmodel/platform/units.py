"""Quantities with units, exported by the package of platforms: see :mod:`simmodel.units`."""

from simmodel.units import parse_quantity, show_quantity

__all__ = ["parse_quantity", "show_quantity"]
