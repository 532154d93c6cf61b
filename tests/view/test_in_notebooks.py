"""Pictures show in notebooks, whose backend makes matplotlib interactive when the first figure loads it."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.new_process import printed

BACKEND = """from matplotlib import interactive
from matplotlib.backends.backend_agg import *
interactive(True)
"""


def test_the_first_plot_leaves_matplotlib_interactive(tmp_path: Path) -> None:
    (tmp_path / "as_in_notebooks.py").write_text(BACKEND)
    said = printed(
        f"import os, sys; sys.path.insert(0, {str(tmp_path)!r}); os.environ['MPLBACKEND'] = 'module://as_in_notebooks'\n"
        "from simmodel import simulate\n"
        "simulate(16, 'probe-4', 'easy').plot.gantt()\n"
        "import matplotlib; print(matplotlib.is_interactive(), matplotlib.get_backend())\n"
    )
    assert said.split() == ["True", "module://as_in_notebooks"]
