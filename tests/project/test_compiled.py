"""The compiled form: built where a compiler is, installed beside no checkout, and held against the interpreted one."""

import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tests.helpers.installed import environment, install, run
from tests.helpers.paths import ROOT

MODULES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["simmodel"]["compiled"]
COMPILER = (sysconfig.get_config_var("CC") or "cl").split()[0]
TESTS = ("tests/resources/pools/test_count_profile.py", "tests/resources/network/test_sharing.py")
CASES = 5000
ABSENT = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"no compiler: {COMPILER} is not here")


def build(kind: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Have hatchling build the compiled form of this checkout: ``"wheel"`` or ``"editable"``."""
    return subprocess.run(
        [sys.executable, "-c", f"from hatchling.build import build_{kind} as build; build({str(folder)!r})"],
        cwd=ROOT,
        env=environment(SIMMODEL_COMPILE="1"),
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_an_editable_install_is_not_compiled(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    done = build("editable", tmp_path)
    assert done.returncode != 0
    assert "an editable install is not compiled" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("path", "reason"), MODULES.items())
def test_a_module_is_compiled_for_the_time_spent_in_it(path: str, reason: str) -> None:
    assert (ROOT / path).exists()
    share = reason.rpartition(":")[2].removesuffix("%")
    assert 10 <= float(share) <= 100


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment that holds the compiled form."""
    folder = tmp_path_factory.mktemp("compiled")
    before = {path for path in (ROOT / "simmodel").rglob("*") if "__pycache__" not in path.parts}
    done = build("wheel", folder)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert {path for path in (ROOT / "simmodel").rglob("*") if "__pycache__" not in path.parts} == before
    (wheel,) = folder.glob("*.whl")
    assert "none-any" not in wheel.name
    return install(wheel, folder)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds all of the checkout but the packages."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in ROOT.iterdir():
        if not path.name.startswith((".", "simmodel")):
            (folder / path.name).symlink_to(path)
    return folder


FORM_IN_A_WORKER = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from simmodel.resources.pools import profile
def place(): return profile.__file__
if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("spawn")) as workers: print(workers.submit(place).result())
"""
PICKLED = """
import pickle, sys
from simmodel.resources.pools.profile import CountProfile
profile = CountProfile(0, 4, [(3, 2), (7.5, 1)])
profile.take(3, 1, 5)
if len(sys.argv) == 2: pickle.dump(profile, open(sys.argv[1], "wb"))
else: print(profile.steps() == pickle.load(open(sys.argv[2], "rb")).steps())
"""


@pytest.mark.long
@ABSENT
def test_a_variable_chooses_the_form(compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(FORM_IN_A_WORKER)
    for form, more in (("compiled", {}), ("interpreted", {"SIMMODEL_INTERPRET": "1"})):
        assert f"({form})" in run(compiled, "-m", "simmodel", "--version", cwd=tmp_path, **more)
        place = run(compiled, "worker.py", cwd=tmp_path, **more).strip()
        assert place.endswith(".py") == (form == "interpreted")


@pytest.mark.long
@ABSENT
def test_both_forms_print_the_same_and_read_each_other(compiled: Path, tmp_path: Path) -> None:
    command = (compiled, "-m", "simmodel", "batch", "lublin-128-week", "--policy", "conservative", "--schedule")
    (tmp_path / "pickled.py").write_text(PICKLED)
    for form, more in (("compiled", {}), ("interpreted", {"SIMMODEL_INTERPRET": "1"})):
        (tmp_path / f"{form}.txt").write_text(run(*command, f"{form}.csv", cwd=tmp_path, **more))
        run(compiled, "pickled.py", f"{form}.pickle", cwd=tmp_path, **more)
    assert (tmp_path / "compiled.csv").read_bytes() == (tmp_path / "interpreted.csv").read_bytes()
    for other, more in (("interpreted", {}), ("compiled", {"SIMMODEL_INTERPRET": "1"})):
        assert run(compiled, "pickled.py", "read", f"{other}.pickle", cwd=tmp_path, **more) == "True\n"


@pytest.mark.long
@ABSENT
def test_the_lock_holds_for_the_compiled_form(compiled: Path, checkout: Path) -> None:
    run(compiled, "-m", "tests.lock", "check", cwd=checkout)


@pytest.mark.long
@ABSENT
def test_what_is_compiled_answers_as_its_files(compiled: Path, checkout: Path) -> None:
    command = (compiled, "-m", "tests.helpers.both_forms", str(CASES))
    interpreted = run(*command, cwd=checkout, SIMMODEL_INTERPRET="1").splitlines()
    for line, other in zip(run(*command, cwd=checkout).splitlines(), interpreted, strict=True):
        assert line == other


@pytest.mark.long
@ABSENT
def test_the_tests_of_what_is_compiled_pass(compiled: Path, checkout: Path) -> None:
    run(compiled, "-m", "pytest", "-p", "no:cacheprovider", *TESTS, cwd=checkout)
