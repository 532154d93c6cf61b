"""The notebooks run from top to bottom, and are committed with what they show."""

from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

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


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("matplotlib.font_manager")  # builds the font cache: a notebook would print that it waits for it
    # The settings of the user who runs it change nothing.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("MPLCONFIGDIR", matplotlib.get_cachedir())
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(path, as_version=4)
    before = [printed(cell) for cell in notebook.cells]
    nbclient.NotebookClient(
        notebook,
        timeout=1200,
        startup_timeout=600,
        iopub_timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    assert [printed(cell) for cell in notebook.cells] == before


def printed(cell: dict) -> str:
    """Return what a cell prints: the part of its outputs that is the same everywhere."""
    return "".join(output["text"] for output in cell.get("outputs", []) if output["output_type"] == "stream")
