"""Policies, one family per file; the registry in :mod:`simmodel.scheduling` has them by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
