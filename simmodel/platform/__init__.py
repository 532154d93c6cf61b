"""Specs: frozen values that describe every resource and system, and the TOML in which they are written."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
