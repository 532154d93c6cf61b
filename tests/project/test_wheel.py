"""The wheel carries all that is needed: built, installed beside nothing of the checkout, and used from elsewhere."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from simmodel.catalogue import bundled_names
from tests.helpers.paths import ROOT


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command with no path of this process and no settings of pip, and return what it prints."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_", "COV"))}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment that holds the wheel, and sees the libraries of this one.

    Nothing is downloaded. A folder named in a .pth file is searched, but .pth files in it are not followed: a checkout
    that is installed in this environment stays out of sight.
    """
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=False, symlinks=os.name != "nt")
    python = folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (site / "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--isolated",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--force-reinstall",
    )
    run(*pip, wheel, cwd=folder)
    return python


def test_the_wheel_replays_a_ready_workload(installed: Path, tmp_path: Path) -> None:
    said = run(installed, "-m", "simmodel", "batch", "lublin-128-week", "--schedule", "s.csv", cwd=tmp_path)
    assert "lublin-128-week under easy on 128 processors" in said
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 601
    script = installed.with_name("simmodel.exe" if os.name == "nt" else "simmodel")
    assert "600 completed" in run(script, "batch", "lublin-128-week", cwd=tmp_path)


def test_the_wheel_carries_types_and_all_that_is_ready(installed: Path, tmp_path: Path) -> None:
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
