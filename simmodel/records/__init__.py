"""Records: the events of a run as columns, and the observers that fill them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
