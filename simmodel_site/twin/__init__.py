"""The twin: follows an external scheduler, foretells its starts and advises; this package never changes it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
