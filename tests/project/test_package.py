"""The package as a whole: its public names, what importing it costs, and that nothing speaks of one machine."""

import inspect
import re
from ast import literal_eval
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from textwrap import dedent

import pytest

import simmodel
from simmodel.scheduling import registry
from tests.helpers import typed_user
from tests.helpers.examples import up_to
from tests.helpers.new_process import printed
from tests.helpers.package_imports import MODULES, OPEN, PUBLIC, imports
from tests.helpers.paths import ROOT
from tests.helpers.public_interface import documented, named_in_pages

HEAVY = ("pandas", "matplotlib", "pyarrow", "networkx", "scipy", "tqdm", "IPython", "dask", "distributed")


_HEAVY = re.compile(rf"\b({'|'.join(HEAVY)})\b")
NAMING_HEAVY = [name for name, path in MODULES.items() if _HEAVY.search(path.read_text("utf-8"))]


@pytest.mark.parametrize("module", NAMING_HEAVY)
def test_importing_a_module_imports_nothing_heavy(module: str) -> None:
    found = imports(MODULES[module], on_import_only=True)
    assert [name for name in found if name.split(".")[0] in HEAVY] == []


PACKAGES = tuple(PUBLIC)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_public_names_of_a_package_exist_and_are_listed(package: str) -> None:
    module = import_module(package)
    assert module.__all__
    assert len(set(module.__all__)) == len(module.__all__)
    submodules = {each.name for each in iter_modules(module.__path__)}
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)
        assert name not in submodules, "a submodule of the same name would hide it"
    with pytest.raises(AttributeError, match="simulated"):
        _ = module.simulated


@pytest.mark.parametrize("package", PACKAGES)
def test_each_exported_name_stands_in_the_code_of_a_page(package: str) -> None:
    missing = sorted({name.rpartition(".")[2] for name in imports(PUBLIC[package])} - documented())
    assert missing == [], f"name it in a page of docs/, or take it out of {package.replace('.', '/')}/__init__.pyi"


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_exported_has_a_docstring_with_its_methods(package: str) -> None:
    lacking = []
    for name in import_module(package).__all__:
        value = getattr(import_module(package), name)
        if inspect.isclass(value) or inspect.isfunction(value):
            lacking += [name] if not inspect.getdoc(value) else []
        owners = value.__mro__ if inspect.isclass(value) else ()
        for owner in (each for each in owners if each.__module__.startswith("simmodel")):
            for member, found in vars(owner).items():
                is_told = inspect.isfunction(found) or isinstance(found, property | classmethod | staticmethod)
                if is_told and not member.startswith("_") and not inspect.getdoc(getattr(value, member)):
                    lacking.append(f"{name}.{member} of {owner.__name__}")
    assert lacking == [], "what is exported says what it does; the rest needs a docstring only to add to its name"


def test_each_name_in_a_page_or_notebook_is_exported() -> None:
    exported = {f"{package}.{name}" for package in PACKAGES for name in import_module(package).__all__}
    exported |= {f"{OPEN}.{name}" for name in import_module(OPEN).__all__}
    exported |= {f"simmodel.learn.{name}" for name in dir(import_module("simmodel.learn"))}  # it has no stub
    missing = {name: page for page, names in named_in_pages().items() for name in names if name not in exported}
    assert missing == {}, "export it from the __init__.pyi of its package, and name the package in the page"


def test_few_names_stand_at_the_top_and_each_is_that_of_one_package() -> None:
    assert len(simmodel.__all__) <= 45
    for name in simmodel.__all__:
        homes = [each for each in map(import_module, PACKAGES[1:]) if name in each.__all__]
        homes = homes or [import_module(getattr(simmodel, name).__module__)]
        assert any(getattr(home, name) is getattr(simmodel, name) for home in homes)
        assert len(homes) == 1 or name == "compare"  # of results in simmodel.metrics, of policies here


@pytest.mark.parametrize("name", [name for name in MODULES if name != "simmodel.__main__"])
def test_every_name_a_module_offers_exists(name: str) -> None:
    module = import_module(name)
    assert [each for each in getattr(module, "__all__", ()) if not hasattr(module, each)] == []


def test_the_front_door_stays_a_function_whatever_is_imported_first() -> None:
    firsts = (
        "simmodel.experiments.comparison",
        "simmodel",
        "simmodel.runs.scenario",
        "simmodel.systems.cluster.system",
    )
    for first in firsts[: up_to(4, 1)]:
        code = f"import {first}, simmodel; print(callable(simmodel.simulate), callable(simmodel.compare))"
        assert printed(code).split() == ["True", "True"]
    assert printed("import simmodel.policies; print(simmodel.policies.Easy().name)").split() == ["easy"]


def test_importing_simmodel_imports_nothing_heavy() -> None:
    later = (*HEAVY, "sqlite3", "simmodel.catalogue", "simmodel.results", "simmodel.futures")
    code = f"import simmodel, sys; print([name for name in {later} if name in sys.modules])"
    assert printed(code).strip() == "[]"


def test_a_plain_replay_imports_no_other_readers_generators_or_writers(tmp_path: Path) -> None:
    log = tmp_path / "one.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 9 4 -1 -1 4 9 -1 1 1 1 1 1 -1 -1 -1\n")
    code = f"""
        import sys
        from simmodel.cli import main
        main(["batch", {str(log)!r}])
        print([name for name in sys.modules if name.startswith(("simmodel.formats.", "simmodel.generators."))])
        print([name for name in sys.modules if name in ("simmodel.results.streams", "simmodel.platform.machine")])
    """
    lines = printed(dedent(code)).splitlines()
    assert sorted(literal_eval(lines[-2])) == ["simmodel.formats.numbers", "simmodel.formats.swf"]
    assert lines[-1] == "[]"


BINARY = (".pyc", ".png", ".gz", ".npz")
LEFT_BY_TOOLS = {".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
TEXTS = sorted(
    path
    for folder in ("simmodel", "tests", "benchmarks", "platforms", "workloads", "notebooks", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix not in BINARY and not LEFT_BY_TOOLS.intersection(path.parts)
) + [path for path in ROOT.glob("*") if path.suffix in (".md", ".toml") or path.name == "LICENSE"]


def test_no_file_speaks_of_one_machine() -> None:
    paths = re.compile("|".join(("/wor" + "k/", "/hom" + r"e/\w", "/roo" + "t/", "/tm" + r"p/\w", "/Use" + r"rs/\w")))
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in TEXTS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if paths.search(line)
    ]
    assert found == []


def test_a_strictly_typed_script_runs_and_uses_every_name_at_the_top(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))  # it registers a policy
    script = Path(typed_user.__file__).read_text("utf-8")
    assert [name for name in simmodel.__all__ if not re.search(rf"(?<![\w\"']){name}\b(?!,\n|$)", script)] == []
    typed_user.main()
    assert "unknown policy 'easey'; did you mean 'easy'?" in capsys.readouterr().out
