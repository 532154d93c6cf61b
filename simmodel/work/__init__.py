"""Work: frozen values that say what is asked, and the live state that says what happened."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
