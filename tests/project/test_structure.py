"""The ratchet: sizes of the package, which grow with capabilities alone, and its walls, which only fall.

CONTRIBUTING.md says what to do when it is red.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simmodel.resources import Pool
from tests.helpers.branches import by_function
from tests.helpers.package_imports import MODULES, ROWS, parsed, through_walls
from tests.helpers.paths import PACKAGE, ROOT, SITE, is_absent
from tests.helpers.statements import by_folder, recorded

ROOM, FEW = 0.02, 20
"""How far a size may move from where it was set: this share, or so many statements if these are more."""

MOST_BRANCHES = {"simmodel.policies": 20, "simmodel_site.policy": 20}
"""The most branches of a function, by package."""
LIMITS = {
    "private names of others": 35,
    "secrets of a live job": 126,
    "questions after the kind": 0,
    "loose parameters, per mille": 46,
    "loose roles": 15,
    "unexported names that upper packages take": 249,
    "unexported names that the site takes": 0,
    "files that two jobs enter": 35,
    "methods of a pool": 35,
}
"""What each wall is at most: to be lowered with its figure, never raised."""

UPPER = {f"simmodel.{name}" for name in ROWS[ROWS.index("runs") + 1 :]}
SYSTEMS = {"Cluster", "Machine", "Broker", "Grid", "Site"}
KINDS = SYSTEMS | {f"{name}Spec" for name in SYSTEMS} | {f"{name}Snapshot" for name in SYSTEMS} | {"Snapshot"}
WORDS = {"cluster", "machine", "broker", "grid", "site"}
OTHERS = {"policy", "place", "work", "view", "job", "task", "platform", "workload", "snapshot", "scenario", "system"}
ROLES = OTHERS | {"cluster", "machine", "broker"}
NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make", "_field_defaults"}
SIMPY = {
    "_queue",
    "_eid",
    "_now",
    "_ok",
    "_value",
    "_defused",
    "_env",
    "_generator",
    "_target",
    "_resume",
    "_active_proc",
}
HIDDEN = {"_job", "_outcome", "_duration", "_length", "_whole", "_end", "_work", "_seen"}
"""What a live job is and how it will end, and its states in snapshots: systems need it, and policies must not see it.

One slot for all of them would make an object, and call a function of Python, for each of millions of jobs.
"""
FRIENDS = ("simmodel.systems.", "simmodel.work.", "simmodel.resources.pools.nodes")
"""Modules that know what is hidden; the last asks whether a job has a body, which takes its own time on any node."""


def own_names(nodes: list[ast.AST]) -> set[str]:
    """Return the names that a module gives to attributes, methods and class variables, slots included."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            found.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.Assign | ast.AnnAssign):
                    found |= {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
                    found |= {str(each.value) for each in ast.walk(part) if isinstance(each, ast.Constant)}
    return found


def is_own(value: ast.expr) -> bool:
    """Whether an expression is a method's own object or class."""
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def private_names(name: str, nodes: list[ast.AST]) -> Iterator[tuple[str, bool]]:
    """Yield each use of a private attribute that the module does not define itself, and whether it is a secret."""
    known = own_names(nodes) | NAMED_TUPLES | SIMPY
    for node in nodes:
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        if not is_own(node.value) and node.attr not in known:
            yield f"{name}:{node.lineno}: {ast.unparse(node)}", node.attr in HIDDEN and name.startswith(FRIENDS)


def questions(name: str, nodes: list[ast.AST]) -> Iterator[str]:
    """Yield each question after the kind of a system outside systems and snapshots."""
    if name.split(".")[1:2] not in (["systems"], ["snapshots"]):
        yield from (f"{name}:{node.lineno}" for node in nodes if asks_kind(node))  # type: ignore[attr-defined]


def asks_kind(node: ast.AST) -> bool:
    """Whether an expression asks for the class of a system, or compares its kind with a word."""
    if isinstance(node, ast.MatchClass):
        return ast.unparse(node.cls) in KINDS
    asks = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
    )
    if not asks and not isinstance(node, ast.Compare):
        return False
    named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & KINDS
    if isinstance(node, ast.Call):
        return bool(named)
    words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)} & WORDS
    kinds = any(
        isinstance(side, ast.Attribute) and side.attr in ("kind", "system") for side in (node.left, *node.comparators)
    )
    return (kinds and bool(words)) or (bool(named) and "type(" in ast.unparse(node))


def parameters(nodes: list[ast.AST]) -> Iterator[tuple[str, bool]]:
    """Yield the name of each parameter of all functions, and whether its type is loose: Any or object."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if each.arg not in ("self", "cls"):
                    yield each.arg, each.annotation is not None and is_loose(each.annotation)


def is_loose(annotation: ast.expr) -> bool:
    """Whether a type says nothing: ``object``, or ``Any`` somewhere in it."""
    return (isinstance(annotation, ast.Name) and annotation.id == "object") or any(
        isinstance(each, ast.Name) and each.id == "Any" for each in ast.walk(annotation)
    )


def files_entered() -> int:
    """Return how many files of the package two jobs under EASY enter."""
    code = (
        "import json, sys\n"
        "from simmodel import Job, simulate\n"
        "def run():\n"
        "    jobs = [Job(id=1, submit=0, run=9, processors=3), Job(id=2, submit=1, run=5, processors=2)]\n"
        "    return simulate(4, jobs, 'easy')\n"
        "run()\n"
        "found = set()\n"
        "def note(frame, event, _):\n"
        "    if event == 'call': found.add(frame.f_code.co_filename)\n"
        "sys.setprofile(note); run(); sys.setprofile(None)\n"
        "print(json.dumps(sorted(found)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return sum(Path(path).is_relative_to(PACKAGE) for path in json.loads(done.stdout))


def methods(owner: type) -> int:
    """Return how many public methods a class has, with those that it inherits and without properties."""
    public = (name for name in dir(owner) if not name.startswith("_"))
    return sum(inspect.isfunction(inspect.getattr_static(owner, name)) for name in public)


@pytest.fixture(scope="module")
def found() -> dict[str, int]:
    """Return the figure of each wall."""
    loose: list[tuple[str, bool]] = []
    private: list[bool] = []
    kinds = 0
    for module, path in MODULES.items():
        nodes = list(ast.walk(parsed(path)))
        loose += parameters(nodes)
        private += [secret for _, secret in private_names(module, nodes)]
        kinds += len(list(questions(module, nodes)))
    upper = [path for module, path in MODULES.items() if ".".join(module.split(".")[:2]) in UPPER]
    return {
        "private names of others": private.count(False),
        "secrets of a live job": private.count(True),
        "questions after the kind": kinds,
        "loose parameters, per mille": round(1000 * sum(each for _, each in loose) / len(loose)),
        "loose roles": sum(each for name, each in loose if name in ROLES),
        "unexported names that upper packages take": len(through_walls(upper)),
        "unexported names that the site takes": len(through_walls((ROOT / "simmodel_site").rglob("*.py"))),
        "files that two jobs enter": files_entered(),
        "methods of a pool": methods(Pool),
    }


@pytest.mark.parametrize("name", [name for name in LIMITS if SITE.exists() or name != "loose parameters, per mille"])
def test_no_wall_rises(found: dict[str, int], name: str) -> None:
    assert found[name] <= LIMITS[name], "a wall only falls: see the ratchet in CONTRIBUTING.md"


def test_limits_fall_with_their_walls(found: dict[str, int]) -> None:
    lower = {name: found[name] for name, limit in LIMITS.items() if limit - found[name] > max(1, 0.01 * limit)}
    assert lower == {}, "lower LIMITS to these"


@pytest.mark.parametrize("package", MOST_BRANCHES)
def test_no_function_weaves_many_ideas(package: str) -> None:
    wide = [each for each in by_function(package) if each[0] > MOST_BRANCHES[package]]
    assert wide == [], "take it apart: what must happen, and what may be left out, are two things"


def test_sizes_move_only_with_capabilities() -> None:
    counted, sizes = by_folder(), recorded()
    moved = {
        name: f"{counted[name]:,} statements, set at {sizes.get(name, 0):,}"
        for name in counted.keys() | {name for name in sizes if not is_absent(name)}
        if abs(counted[name] - sizes.get(name, 0)) > max(FEW, ROOM * sizes.get(name, 0))
    }
    assert moved == {}, (
        "if a capability came or left, run `python -m tests.helpers.statements set` and name it in the commit; "
        "else find what can go"
    )
