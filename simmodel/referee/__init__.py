"""The referee: whether a schedule from elsewhere is possible, and which policy made it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
