"""Utilities for all packages: errors, display, entry points, loading, calls by name, units, writing."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
