"""Quantities with units, exported by the package of platforms: see :mod:`simmodel.foundation.units`."""

from simmodel.foundation.units import parse_quantity, show_quantity

__all__ = ["parse_quantity", "show_quantity"]
