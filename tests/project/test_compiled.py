"""The compiled form: built where a compiler is, installed beside no checkout, and held against the interpreted one."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.helpers.examples import up_to
from tests.helpers.installed import environment, install, run
from tests.helpers.paths import ROOT

MODULES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["simmodel"]["compiled"]
COMPILER = (sysconfig.get_config_var("CC") or "cl").split()[0]
TESTS = ("tests/resources/pools/test_count_profile.py", "tests/resources/network/test_sharing.py")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *(f"how_to/{name}.md" for name in ("link", "memory_pool", "own_resource", "placement")),
)
PAGES += tuple(
    f"how_to/{name}.md" for name in ("processor", "shared_processor", "sliced_gpu", "storage", "timed_links")
)
"""README, and the pages that have resources of a user's own."""
FORMS: tuple[tuple[str, dict[str, str]], ...] = (("compiled", {}), ("interpreted", {"SIMMODEL_INTERPRET": "1"}))
NO_COMPILER = {"PATH": "", "CC": "none-is-here"}
ABSENT = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"no compiler: {COMPILER} is not here")


def build(kind: str, folder: Path, source: Path = ROOT, **more: str) -> "subprocess.CompletedProcess[str]":
    """Have hatchling build a ``"wheel"``, ``"sdist"`` or ``"editable"`` of this checkout."""
    return subprocess.run(
        [sys.executable, "-c", f"from hatchling.build import build_{kind} as build; build({str(folder)!r})"],
        cwd=source,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_an_editable_install_is_not_compiled(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    done = build("editable", tmp_path, SIMMODEL_COMPILE="1")
    assert done.returncode != 0
    assert "an editable install is not compiled" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_machine_without_a_compiler_is_told_what_needs_one(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    pytest.importorskip("mypyc")
    done = build("wheel", tmp_path, SIMMODEL_COMPILE="1", **NO_COMPILER)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith("SIMMODEL_COMPILE is set, but the C compiler fails (")
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_without_a_compiler_the_checkout_and_the_source_distribution_are_installed_as_ever(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    assert build("sdist", tmp_path, **NO_COMPILER).returncode == 0
    (sdist,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path)
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    assert all((source / path).exists() for path in ("hatch_build.py", *MODULES))
    for name, of in (("sdist", source), ("checkout", ROOT)):
        folder = tmp_path / name
        folder.mkdir()
        done = build("wheel", folder, of, **NO_COMPILER)
        assert done.returncode == 0, done.stderr
        (wheel,) = folder.glob("*.whl")
        assert wheel.name.endswith("py3-none-any.whl")
        python = install(wheel, folder)
        said = run(python, "-m", "simmodel", "batch", "lublin-128-week", cwd=folder, **NO_COMPILER)
        assert "600 completed" in said
        assert "(interpreted)" in run(python, "-m", "simmodel", "--version", cwd=folder, **NO_COMPILER)


@pytest.mark.exhaustive  # the source distribution has the same files: the test before
@ABSENT
def test_the_source_distribution_is_compiled_like_the_checkout(compiled: Path, tmp_path: Path) -> None:
    assert build("sdist", tmp_path).returncode == 0
    (sdist,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path)
    done = build("wheel", tmp_path, tmp_path / sdist.name.removesuffix(".tar.gz"), SIMMODEL_COMPILE="1")
    assert done.returncode == 0, done.stderr
    names = [sorted(ZipFile(next(folder.glob("*.whl"))).namelist()) for folder in (tmp_path, compiled.parents[2])]
    assert names[0] == names[1]
    assert any("__mypyc" in name for name in names[0])


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
    done = build("wheel", folder, SIMMODEL_COMPILE="1")
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
from copy import deepcopy
from simmodel.resources.network.bundle import Bundle, Channel
from simmodel.resources.network.sharing import Sharing
from simmodel.resources.pools.profile import CountProfile
if len(sys.argv) == 2:
    profile = CountProfile(0, 4, [(3, 2), (7.5, 1)])
    profile.take(3, 1, 5)
    links, sharing = [Channel("a", 5), Channel("b", 6.0)], Sharing()
    flows = [Bundle([(link, 1.0)], number=at) for at, link in enumerate(links)]
    for flow in flows:
        flow.count, flow.since = 1, 0.0
        flow.weigh(2.0)
        sharing.join(flow)
    sharing.solve()
    pickle.dump((profile, links, deepcopy(sharing), flows, sharing), open(sys.argv[1], "wb"))
else:
    profile, links, copied, flows, sharing = pickle.load(open(sys.argv[2], "rb"))
    links[0].capacity = 3
    sharing.refit(links[0])
    sharing.solve()
    print(profile.steps(), [flow.level for flow in flows], links, copied.waiting)
"""
WRITTEN = """
import sys
from pathlib import Path
from simmodel import start
folder = Path(sys.argv[1])
folder.mkdir()
for policy in ("conservative", "conservative-keep"):
    simulation = start(None, "lublin-128-week", policy)
    simulation.run(until=200_000)
    simulation.snapshot().to_json(folder / f"{policy}.json")
    result = simulation.run().result()
    result.to_json(folder / f"{policy}.result.json")
    result.to_csv(folder / policy)
"""


@pytest.mark.long
@ABSENT
def test_a_variable_chooses_the_form(compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(FORM_IN_A_WORKER)
    for form, more in FORMS:
        assert f"({form})" in run(compiled, "-m", "simmodel", "--version", cwd=tmp_path, **more)
        place = run(compiled, "worker.py", cwd=tmp_path, **more).strip()
        assert place.endswith(".py") == (form == "interpreted")


@pytest.mark.long
@ABSENT
def test_each_form_reads_the_pickles_of_the_other(compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "pickled.py").write_text(PICKLED)
    for form, more in FORMS:
        run(compiled, "pickled.py", form, cwd=tmp_path, **more)
    read = [run(compiled, "pickled.py", "read", form, cwd=tmp_path, **more) for form, _ in FORMS for _, more in FORMS]
    assert read == [read[0]] * 4
    assert "[1.5, 3.0]" in read[0]


@pytest.mark.long
@ABSENT
def test_both_forms_write_the_same_bytes_but_for_their_name_and_the_time_of_decisions(
    compiled: Path, tmp_path: Path
) -> None:
    (tmp_path / "written.py").write_text(WRITTEN)
    files = {}
    for form, more in FORMS:
        run(compiled, "written.py", form, cwd=tmp_path, **more)
        paths = sorted(path for path in (tmp_path / form).rglob("*") if path.is_file())
        texts = {path.relative_to(tmp_path / form): path.read_text("utf-8") for path in paths}
        assert sum(f'"form": "{form}"' in text for text in texts.values()) == 4
        files[form] = {
            name: re.sub(r'(?m)^ {6}"(form|seconds|mean|min|max)": .*$', "", text) for name, text in texts.items()
        }
    assert files["compiled"] == files["interpreted"]


@pytest.mark.long
@ABSENT
def test_the_lock_holds_for_the_compiled_form(compiled: Path, checkout: Path) -> None:
    run(compiled, "-m", "tests.lock", "check", cwd=checkout)


@pytest.mark.long
@ABSENT
def test_what_is_compiled_answers_as_its_files(compiled: Path, checkout: Path) -> None:
    command = (compiled, "-m", "tests.helpers.both_forms", str(up_to(5000)))
    interpreted = run(*command, cwd=checkout, SIMMODEL_INTERPRET="1").splitlines()
    for line, other in zip(run(*command, cwd=checkout).splitlines(), interpreted, strict=True):
        assert line == other


@pytest.mark.long
@ABSENT
def test_the_tests_of_what_is_compiled_pass(compiled: Path, checkout: Path) -> None:
    run(compiled, "-m", "pytest", "-p", "no:cacheprovider", *TESTS, cwd=checkout)


@pytest.mark.long
@ABSENT
def test_readme_and_resources_of_users_run_in_the_compiled_form(compiled: Path, checkout: Path) -> None:
    chosen = f"(blocks and ({' or '.join(PAGES)})) or as_typed"
    run(
        compiled,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-m",
        "",
        "-k",
        chosen,
        "tests/project/test_readme.py",
        cwd=checkout,
    )
