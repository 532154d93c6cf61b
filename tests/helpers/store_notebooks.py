"""Runs notebooks from top to bottom and stores them with what they show, pictures with few colours.

``python -m tests.helpers.store_notebooks notebooks/01_first_steps.ipynb``; with ``--as-they-are`` nothing is run, only
the pictures are made smaller.
"""

from __future__ import annotations

import sys
import tempfile
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

COLOURS = 256
"""As many keep the text and the curves of a plot sharp."""
WIDGET = "application/vnd.jupyter.widget-view+json"


def smaller(picture: str) -> str:
    """Return a picture (PNG, base 64) with few colours; the picture itself where that is not smaller."""
    image = Image.open(BytesIO(b64decode(picture)))
    if image.mode == "P":
        return picture
    white = Image.new("RGBA", image.size, "white")
    flat = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    found = BytesIO()
    flat.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(found, "PNG", optimize=True)
    text = b64encode(found.getvalue()).decode()
    return text if len(text) < len(picture) else picture


def run(path: Path) -> Any:
    """Return a notebook with the outputs of a run in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=1200, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
    notebook.metadata.language_info = {"name": "python"}  # of any version
    return notebook


def store(path: Path, *, as_it_is: bool = False) -> None:
    """Run a notebook, unless it is to stay as it is, and store it with smaller pictures."""
    import nbformat

    notebook = nbformat.read(path, as_version=4) if as_it_is else run(path)
    notebook.metadata.pop("widgets", None)  # sliders are drawn by a running kernel alone
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                data["image/png"] = smaller(data["image/png"]).rstrip("\n")
    nbformat.write(notebook, path)


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if not name.startswith("--")]
    for name in names:
        store(Path(name), as_it_is="--as-they-are" in sys.argv)
        print(f"{name}: {Path(name).stat().st_size:,} bytes")
