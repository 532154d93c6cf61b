"""Every error that simmodel raises on purpose is one of its own; what must be built in stands here with its reason."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from tests.helpers.package_imports import MODULES

SOURCES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}
BUILT_IN = {name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, BaseException)}

ATTRIBUTE = "hasattr() and copies ask for attributes, and take nothing but this error for an answer"
CAUGHT = "its caller catches it and says in one sentence where the value stands and what is accepted"
RAISED = {
    "*": {"NotImplementedError": "a method that a subclass must write"},
    "simmodel": {"AttributeError": ATTRIBUTE},
    "simmodel.extending": {"AttributeError": ATTRIBUTE},
    "simmodel.form": {"ImportError": "import goes on to the next finder"},
    "simmodel.experiments.runs": {"AttributeError": ATTRIBUTE},
    "simmodel.resources.pools.allocation": {"AttributeError": ATTRIBUTE},
    "simmodel.work.live": {"AttributeError": ATTRIBUTE},
    "simmodel.work.table": {"AttributeError": ATTRIBUTE},
    "simmodel.foundation.entries": {"KeyError": "a mapping's get() takes it for an answer; who asks has a sentence"},
    "simmodel.foundation.writing": dict.fromkeys(("FileNotFoundError", "PermissionError"), CAUGHT),
    "simmodel.testing.machines": {"AssertionError": "a check of simmodel.testing fails as a test does"},
    "simmodel.testing.resources": {"AssertionError": "a check of simmodel.testing fails as a test does"},
    "simmodel.testing.systems": {"AssertionError": "a check of simmodel.testing fails as a test does"},
    "simmodel_site.policy.settings": {"ValueError": CAUGHT},
    "simmodel_site.policy.wishes": {"ValueError": CAUGHT},
    "simmodel_site.twin.hooks.tell": {"OSError": "it runs on a cluster's nodes without simmodel, and catches it"},
    "simmodel_site.twin.programs": dict.fromkeys(("OverflowError", "TimeoutError"), CAUGHT),
}
"""The built-in errors that a module may raise, and why."""

DEFINED = {
    "simmodel.foundation.errors.SimmodelError": "the base class of all others",
    "simmodel.futures.in_worker.OutOfTime": "ends a task at its deadline, and is caught there",
    "simmodel.scheduling.scheduler.Withdrawn": "tells the scheduler that a job has left, and is caught there",
}
"""The classes of errors that are no SimmodelErrors, and why."""

VALIDATORS = {"attrs.validators.optional"}
"""Those of attrs that raise nothing themselves: the others raise errors of several parts."""


def _raised() -> Iterator[tuple[str, str, int]]:
    """Yield the module, the class and the line of each built-in error that is raised."""
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and node.exc is not None:
                made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                if isinstance(made, ast.Name) and made.id in BUILT_IN:
                    yield path, made.id, node.lineno


def test_every_error_that_is_raised_is_a_simmodel_error() -> None:
    wrong = [
        f"{path}:{line} raises {name}: raise an InputError, or one of simmodel.foundation.errors that is a {name} too"
        for path, name, line in _raised()
        if name not in {**RAISED["*"], **RAISED.get(path, {})}
    ]
    assert wrong == []


def test_every_exception_has_a_use() -> None:
    raised = {(path, name) for path, name, _ in _raised()}
    assert [(path, name) for path, names in RAISED.items() for name in names if path in SOURCES] == [
        (path, name) for path, names in RAISED.items() for name in names if (path, name) in raised
    ]


def test_every_class_of_errors_is_a_simmodel_error() -> None:
    bases = {
        node.name: (path, {base.id for base in node.bases if isinstance(base, ast.Name)})
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }

    def above(name: str) -> set[str]:
        return {name}.union(*map(above, bases[name][1] - {name})) if name in bases else {name}

    errors = {name for name in bases if above(name) & {each for each in BUILT_IN if not each.endswith("Warning")}}
    foreign = {f"{bases[name][0]}.{name}" for name in errors if "SimmodelError" not in above(name) - {name}}
    assert foreign == DEFINED.keys()


def test_validators_of_attrs_that_raise_their_own_errors_are_not_used() -> None:
    used = {
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "attrs.validators"
        if ast.unparse(node) not in VALIDATORS
    }
    assert used == set()
