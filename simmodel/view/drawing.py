"""Figures whose files have text as text."""

from __future__ import annotations

from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

__all__ = ["AS_TEXT", "Drawing"]

AS_TEXT: Any = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}
"""matplotlib's settings for text in files: fonts of Type 42 in pdf and ps, and text elements in svg."""


class Drawing(Figure):
    """A figure as matplotlib's, which is saved with text as text; its arguments are those of matplotlib's."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """Write the figure; arguments as of matplotlib's."""
        with rc_context(AS_TEXT):
            super().savefig(*args, **options)
