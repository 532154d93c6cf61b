"""SimPy for computing systems: one vocabulary from an accelerator to a grid.

The names that most users need are here; the rest is in the packages: ``from simmodel.platform import ClusterSpec``.
"""

import os

import lazy_loader

from simmodel.moved import follow

__version__ = "0.2.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

follow()
if os.environ.get("SIMMODEL_INTERPRET"):
    from simmodel.form import interpret

    interpret()


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except AttributeError as error:
        from pathlib import Path

        stubs = sorted(Path(__file__).parent.glob("*/__init__.pyi"))
        homes = [stub.parent.name for stub in stubs if f" {name} as {name}" in stub.read_text("utf-8")]
        if not homes:
            raise
        raise AttributeError(f"{error}; it is in simmodel.{homes[0]}") from None
