"""The twin: follows a scheduler outside, foretells what it will do and advises; this package never changes it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
