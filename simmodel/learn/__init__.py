"""Environments for learning agents, which gymnasium makes by name, and their agents as policies."""

import lazy_loader

from simmodel.foundation.errors import optional_imports

with optional_imports():
    from simmodel.learn.ready import register_environments

register_environments()
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
