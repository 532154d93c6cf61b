"""The base of the classes that hold the plots of a result: a notebook shows which there are."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from simmodel.display import Cells, Shown

if TYPE_CHECKING:
    from typing import Any

__all__ = ["PlotMenu"]


class PlotMenu(Shown):
    """The plots of one result, one method each; its repr and HTML list them."""

    _result: Any

    def _plots(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_")]

    def _cells(self) -> Cells:
        documents = {name: inspect.getdoc(getattr(self, name)) or "" for name in self._plots()}
        return [["plot", "shows"], *([name, text.partition(";")[0]] for name, text in documents.items())]

    def __repr__(self) -> str:
        return f"<plots of {self._result.name}: {', '.join(self._plots())}>"
