"""The wheel and the source distribution carry all that is needed: built, installed beside no checkout, and used."""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from simmodel import __version__
from simmodel.catalogue import bundled_names
from tests.helpers.installed import environment, install, run
from tests.helpers.paths import ROOT

READY = ("platforms", "workloads", "experiments")


@pytest.fixture(scope="module", params=[pytest.param("wheel", marks=pytest.mark.exhaustive), "sdist"])
def distribution(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the wheel, or of the source distribution."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", f"--{request.param}", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def installed(distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(distribution, tmp_path_factory.mktemp("installed"))


@pytest.mark.long  # that it has all of it: the test above
def test_what_is_installed_replays_a_ready_workload(installed: Path, tmp_path: Path) -> None:
    outputs = ("--schedule", "s.csv", "--html", "run.html")
    said = run(installed, "-m", "simmodel", "batch", "lublin-128-week", *outputs, cwd=tmp_path)
    assert "lublin-128-week under easy on 128 processors" in said
    assert "</html>" in (tmp_path / "run.html").read_text("utf-8")
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 601
    script = installed.with_name("simmodel.exe" if os.name == "nt" else "simmodel")
    assert "600 completed" in run(script, "batch", "lublin-128-week", cwd=tmp_path)


@pytest.mark.long  # what the wheel is told to hold: the next test
def test_what_is_installed_has_types_and_all_that_is_ready(installed: Path, tmp_path: Path) -> None:
    code = (
        "import simmodel, pathlib; from simmodel.catalogue import bundled_names as names\n"
        "from simmodel.catalogue.tasks import load_tasks, task_names\n"
        "home = pathlib.Path(simmodel.__file__).parent\n"
        "print(home); print((home / 'py.typed').exists())\n"
        "print(*names('platforms')); print(*names('workloads'))\n"
        "print(*names('experiments'))\n"
        "tasks = task_names()\n"
        "print(*(len(simmodel.load_workload(name)) > 0 for name in names('workloads') if name not in tasks))\n"
        "print(*(len(load_tasks(name)) > 0 for name in tasks))\n"
        "print(*(bool(simmodel.load_platform(name).processors) for name in names('platforms')))\n"
    )
    home, typed, platforms, workloads, experiments, *loaded = run(installed, "-c", code, cwd=tmp_path).splitlines()
    assert Path(home).is_relative_to(installed.parents[1])
    assert typed == "True"
    assert platforms.split() == bundled_names("platforms") != []
    assert workloads.split() == bundled_names("workloads") != []
    assert experiments.split() == bundled_names("experiments") != []
    assert "False" not in " ".join(loaded)


def test_the_wheel_takes_all_that_is_ready_and_the_types() -> None:
    target = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert target["packages"] == ["simmodel", "simmodel_site"]
    assert target["force-include"] == {name: f"simmodel/_data/{name}" for name in READY}
    assert (ROOT / "simmodel/py.typed").exists()
    assert all(bundled_names(name) for name in READY)


@pytest.mark.long
def test_the_wheel_and_what_it_depends_on_are_enough(distribution: Path, tmp_path: Path) -> None:
    """Install with the declared dependencies alone, from the package index, into an environment that sees no others."""
    venv.create(tmp_path / "env", with_pip=True, symlinks=os.name != "nt")
    binaries = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    index = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    done = subprocess.run(
        [binaries / "python", "-m", "pip", "install", "-q", distribution],
        cwd=tmp_path,
        env=environment() | index,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    said = run(binaries / "simmodel", "batch", "lublin-128-week", "--html", "run.html", cwd=tmp_path)
    assert "600 completed" in said
    assert "</html>" in (tmp_path / "run.html").read_text("utf-8")
    code = (
        "import simmodel; print(simmodel.__version__)\n"
        "print(simmodel.simulate('hetsim-slow', 'random:tasks=5', 'heft').ended > 0)\n"
    )
    assert run(binaries / "python", "-c", code, cwd=tmp_path).split() == [__version__, "True"]
