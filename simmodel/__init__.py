"""SimPy for computing systems: one vocabulary from an accelerator to a grid.

The names that most users need are here; the rest is in the packages: ``from simmodel.platform import ClusterSpec``.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
