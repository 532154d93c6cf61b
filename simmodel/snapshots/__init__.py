"""Snapshots: the state of a system at one instant as typed values, read from and written to JSON."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
