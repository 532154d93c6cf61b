"""The base class of explanations: a report in text, a document, a picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from simmodel.foundation.display import Shown
from simmodel.results.stores import json_text

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simmodel.view.style import Size

__all__ = ["Told"]


class Told(Shown):
    """The base class of explanations, which say why work waits."""

    def report(self) -> str:
        """Return the explanation as lines of text."""
        return "\n".join(self._lines())

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        raise NotImplementedError

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the document as JSON, and write it to a file if a path is given."""
        return json_text(self.document(), path)

    def plot(self, *, title: str | None = None, figsize: Size | None = None) -> Figure:
        """Draw it."""
        raise NotImplementedError

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.report()
