"""The notebooks run from top to bottom, and are committed with what they show."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.filterwarnings("ignore")  # those of the machinery that runs notebooks


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_its_outputs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    assert path.stat().st_size < 500_000
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"] == []
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    notebook = nbformat.read(path, as_version=4)
    before = [printed(cell) for cell in notebook.cells]
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert [printed(cell) for cell in notebook.cells] == before


def printed(cell: dict) -> str:
    """Return what a cell prints: the part of its outputs that is the same everywhere."""
    return "".join(output["text"] for output in cell.get("outputs", []) if output["output_type"] == "stream")
