"""Menus of plots: the functions that draw a record, as methods of the plots of a result."""

from __future__ import annotations

import inspect
from types import MethodType
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from simmodel.foundation.display import Cells, Shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Plot", "PlotMenu"]

Options = ParamSpec("Options")
Record = TypeVar("Record")
Record_co = TypeVar("Record_co", covariant=True)
Drawn = TypeVar("Drawn")


class _Holder(Protocol[Record_co]):
    @property
    def _result(self) -> Record_co: ...


class Plot(Generic[Record, Options, Drawn]):
    """A function that draws a record, as a method of a menu: with its signature and docstring.

    Parameters
    ----------
    draw
        the function; its first argument is the result of the menu
    """

    def __init__(self, draw: Callable[Concatenate[Record, Options], Drawn]) -> None:
        self._draw = draw

    @overload
    def __get__(self, menu: None, owner: type) -> Callable[Concatenate[Record, Options], Drawn]: ...

    @overload
    def __get__(self, menu: _Holder[Record], owner: type) -> Callable[Options, Drawn]: ...

    def __get__(
        self, menu: _Holder[Record] | None, owner: type
    ) -> Callable[Concatenate[Record, Options], Drawn] | Callable[Options, Drawn]:
        return self._draw if menu is None else MethodType(self._draw, menu._result)


class PlotMenu(Shown):
    """The plots of one result, one method each; its repr and HTML list them."""

    _result: Any

    def _plots(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_")]

    def _cells(self) -> Cells:
        heads = {name: (inspect.getdoc(getattr(self, name)) or "").partition("\n")[0] for name in self._plots()}
        return [["plot", "shows"], *([name, text.partition(";")[0]] for name, text in heads.items())]

    def __repr__(self) -> str:
        return f"<plots of {self._result.name}: {', '.join(self._plots())}>"
