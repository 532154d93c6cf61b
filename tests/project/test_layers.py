"""The order of the packages: who imports whom, at the top of a module, in functions, for typing, and by strings."""

from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from simmodel.scheduling.registry import BUILT_IN
from tests.helpers.package_imports import (
    CORE,
    MODULES,
    ROWS,
    STUBS,
    imported_modules,
    imports,
    modules_in_strings,
    row_of,
)
from tests.helpers.paths import is_absent

UPWARD: dict[tuple[str, str], str] = {}
"""Importer and imported, of what climbs against the order all the same, and why."""
NAMED_UPWARD = {
    ("simmodel.moved", "simmodel_site"): "the new names of modules that moved, for one version",
    ("simmodel.platform.models", "resources"): "the tables of models and placements, loaded by name when one is built",
    ("simmodel.platform.models", "predictors"): "the table of predictors, loaded by name when a cluster is built",
    (
        "simmodel.results.stored",
        "referee",
    ): "the explanation of a result, which repeats its run, loaded when asked for",
    ("simmodel.platform.topology", "formats"): "the reader of SimGrid's files, loaded when a network is in one",
    (
        "simmodel.scheduling.registry",
        "policies",
    ): "the table of policies, loaded by name when one is asked for, and the group of entry points of policies",
}
"""Module and the later row that its strings name, and why."""

HELD = [name for name in MODULES if name not in ("simmodel", "simmodel_site")]  # the table of public names stands aside


@cache
def imported(name: str) -> set[str]:
    """Return the other modules of the package that a module imports."""
    return imported_modules(MODULES[name]) - {name}


def climbs(name: str) -> set[tuple[str, str]]:
    """Return the imports of a module from rows after its own, or of the core from the table of public names."""
    others = imported(name) | (imported_modules(STUBS[name]) if name in STUBS else set())
    core = name in CORE
    return {(name, other) for other in others if (core if other == "simmodel" else row_of(other) > row_of(name))}


def climbs_by_name(name: str) -> set[tuple[str, str]]:
    """Return the rows after a module's own of which its strings name modules."""
    named = modules_in_strings(MODULES[name])
    return {(name, ROWS[row_of(other)]) for other in named if row_of(other) > row_of(name)}


@pytest.mark.parametrize("name", HELD)
def test_a_module_imports_only_from_rows_before_its_own(name: str) -> None:
    assert row_of(name) >= 0
    assert sorted(climbs(name) - UPWARD.keys()) == []
    assert sorted(climbs_by_name(name) - NAMED_UPWARD.keys()) == []


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "drawn.py"
    path.write_text(
        '"""simmodel.runs"""\nimport simmodel.foundation.errors\n'
        "if TYPE_CHECKING:\n    from simmodel.work.job import Job\n"
        "def ask(name):\n    from simmodel import runs\n"
        "    return import_module(f'simmodel.policies.{name}'), 'simmodel.cli:main'\n"
    )
    assert imported_modules(path) == {"simmodel.foundation.errors", "simmodel.work.job", "simmodel.runs"}
    assert modules_in_strings(path) == {"simmodel.policies", "simmodel.cli"}
    assert list(imports(path, on_import_only=True)) == ["simmodel.foundation.errors"]


def test_every_exception_is_still_one() -> None:
    gone = "remove what is gone from the table"
    assert {pair for name, _ in UPWARD for pair in climbs(name)} >= UPWARD.keys(), gone
    named = {pair for pair in NAMED_UPWARD if not is_absent(pair[1])}
    assert {pair for name, _ in NAMED_UPWARD for pair in climbs_by_name(name)} >= named, gone


def test_built_in_policies_are_classes_of_the_row_of_policies() -> None:
    modules = {source.partition(":")[0] for source, _ in BUILT_IN.values()}
    assert sorted(modules - MODULES.keys()) == []
    assert {module.split(".")[1] for module in modules} == {"policies"}


def test_no_modules_import_each_other_in_circles() -> None:
    graph = nx.DiGraph([(name, other) for name in HELD for other in imported(name) if other != "simmodel"])
    circles = sorted((sorted(each) for each in nx.strongly_connected_components(graph) if len(each) > 1), key=len)
    assert circles == []
