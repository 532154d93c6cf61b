"""The notebooks run from top to bottom, and are committed with what they show."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.new_process import printed as printed_by
from tests.helpers.paths import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.rglob("[!.]*.ipynb"))
LARGEST = 300_000
"""Bytes of a notebook at most: ``python -m tests.helpers.store_notebooks`` stores small pictures."""
pytestmark = pytest.mark.filterwarnings("ignore")  # those of the machinery that runs notebooks


def test_there_are_notebooks() -> None:
    names = {path.relative_to(FOLDER).as_posix() for path in NOTEBOOKS}
    assert {"01_first_steps.ipynb", "09_play.ipynb", "course/exercises.ipynb", "course/solutions.ipynb"} <= names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_its_outputs(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    cells = [cell for cell in read(path) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"] == []
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS[:3], ids=lambda path: path.stem)
def test_the_first_notebooks_begin_with_a_question_and_end_with_a_picture(path: Path) -> None:
    first, *_, last = read(path)
    assert first["source"].split("\n\n")[1].split("**")[1].endswith("?")
    assert any("image/png" in output.get("data", {}) for output in last["outputs"])


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_form_of_its_version(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.read(path, as_version=4))


def test_the_solutions_have_the_texts_and_the_checks_of_the_exercises_and_are_right() -> None:
    exercises, solutions = (read(FOLDER / f"course/{name}.ipynb") for name in ("exercises", "solutions"))
    open_cells = [cell["id"] for cell in exercises[1:] if "raise NotImplementedError" in cell["source"]]
    assert len(open_cells) == 12
    differ = [old["id"] for old, new in zip(exercises, solutions, strict=True) if old["source"] != new["source"]]
    assert differ == [exercises[0]["id"], *open_cells]  # the title, and what is to be written
    assert [cell["id"] for cell in solutions if "raise NotImplementedError" in cell["source"]] == []
    for cells, said in ((exercises, "not yet"), (solutions, "right")):
        lines = "".join(printed(cell) for cell in cells).splitlines()
        assert lines == [f"exercise {number}: {said}" for number in range(1, 13)]


MISTAKES = (
    ("waits.append(env.now - came)", "waits.append(0)"),
    ("3: 2, 4: 6}", "3: 2, 4: 10}"),
    ("np.maximum(run, tau), 1)", "np.maximum(run, tau), 0)"),
    ("rate = len(jobs) / observed", "rate = 1 / observed"),
    ("(job.requested, job.submit", "(-job.requested, job.submit"),
    ("beside -= job.processors", "pass"),
    ("return max(policies, key=index)", "return min(policies, key=index)"),
    ("np.sqrt(2 * cost", "np.sqrt(cost"),
    ('"C": 15.5', '"C": 15'),
    ("min(able, key", "max(able, key"),
    ("return min(policies, key=lambda", "return max(policies, key=lambda"),
    ("ddof=1", "ddof=0"),
)
"""A mistake in the solution of each exercise."""


@pytest.mark.notebooks
def test_each_check_of_the_exercises_finds_a_mistake() -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("matplotlib")
    cells = nbformat.read(FOLDER / "course/solutions.ipynb", as_version=4).cells
    program = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    for right, wrong in MISTAKES:
        assert program.count(right) == 1
        program = program.replace(right, wrong)
    lines = printed_by(f"import matplotlib; matplotlib.use('Agg')\n{program}").splitlines()
    assert [line.partition(":")[::2] for line in lines if "not right yet: " not in line] == []
    assert len(lines) == len(MISTAKES) == 12


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == "09_play":
        pytest.importorskip("ipywidgets")
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


def read(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook, texts as one string; to import nbformat takes as long as a hundred tests."""
    cells: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = "".join(output["text"])
    return cells


def printed(cell: dict) -> str:
    """Return what a cell prints: the part of its outputs that is the same everywhere."""
    return "".join(output["text"] for output in cell.get("outputs", []) if output["output_type"] == "stream")
