"""How many small faults the tests find: faults are drawn, put into a clone one at a time, and the tests near them run.

``python benchmarks/mutants.py --number 60`` draws 60 of the mutants of ``simmodel/systems``, ``policies`` and
``resources`` (``--packages``): a constant one higher or lower, a comparison with its neighbour, ``and`` for ``or``, a
lost ``not``, plus for minus, times for divided by, a statement left out. The same ``--seed`` draws the same ones, and
``--first`` begins later in the list. For each, the tests of its folder, the recorded figures
(``tests/project/test_lock.py``) and the other tests of its package run until one fails. A mutant is killed by a failure
or by using up the CPU time (``--limit``), and survives if all pass.

With ``--against REVISION`` the survivors also run with the tests of another commit: one that these kill is a lost kill.
``--long`` gives lost kills the tests with the marker ``long`` and more examples of Hypothesis, as in CI. Each row of
the printed CSV is one mutant. The checkout is never changed, only clones of its HEAD in a temporary folder.

Far cheaper with a map of which tests run which lines. ``--make-map FILE`` writes it: it runs the tests of the packages
and the recorded figures once under coverage (``pip install coverage``), with ``--against`` those of another commit.
``--map FILE`` (and ``--against-map`` beside ``--against``) then tries each mutant in a fork of one process that has
collected these tests: only those that run its line, fastest first, until one fails or ``--limit`` is used up. Then the
mutant survived all tests that ran, which is printed as ``(cut)``; one on a line that no test runs is ``(not run)``. See
``tests_of_lines.py``.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import importlib.util
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no")
LONG = ("-m", "not exhaustive and not live and not notebooks", "--hypothesis-profile=thorough")


class Mutant(NamedTuple):
    """A file, and the bytes of it that are replaced."""

    file: str
    line: int
    begin: int
    end: int
    new: str


def expressions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that may be mutated: neither annotations nor parts of formatted strings."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns") or isinstance(tree, ast.JoinedStr):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield node
                yield from expressions(node)


def mutations(node: ast.AST) -> Iterator[str]:
    """Yield the source of each mutation of a node."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield from (repr(node.value + step) for step in (1, -1))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield swapped(node, "ops")
    elif isinstance(node, ast.BoolOp) or (isinstance(node, ast.BinOp) and type(node.op) in SWAPS):
        yield swapped(node, "op")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.unparse(node.operand)})"
    elif is_effect(node):
        yield "pass"


def is_effect(node: ast.AST) -> bool:
    """Whether a node is a statement that can be left out without a name going missing."""
    if isinstance(node, ast.Assign):
        return all(isinstance(each, ast.Attribute) for each in node.targets)
    return isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))


def swapped(node: ast.AST, field: str) -> str:
    """Return the source of a node with its operator replaced by the neighbour."""
    other = copy.copy(node)
    old = getattr(node, field)
    setattr(other, field, [SWAPS[type(old[0])]()] if isinstance(old, list) else SWAPS[type(old)]())
    return f"({ast.unparse(other)})"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    source = path.read_bytes()
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node in expressions(ast.parse(source)):
        for new in mutations(node):
            at: Any = node
            begin, end = begins[at.lineno - 1] + at.col_offset, begins[at.end_lineno - 1] + at.end_col_offset
            yield Mutant(path.relative_to(ROOT).as_posix(), at.lineno, begin, end, new)


def drawn(packages: list[str], seed: int) -> list[Mutant]:
    """Return all mutants of the packages in an order that the seed decides."""
    files = [path for package in packages for path in sorted((ROOT / "simmodel" / package).rglob("*.py"))]
    found = [mutant for path in files for mutant in mutants_of(path)]
    Random(seed).shuffle(found)
    return found


def clone(folder: Path, tests: str | None) -> Path:
    """Return a clone of HEAD, with the tests of another commit if one is given."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    if tests is not None:
        subprocess.run(["git", "rm", "-rq", "tests"], cwd=folder, check=True)
        subprocess.run(["git", "checkout", "-q", tests, "--", "tests", "pyproject.toml"], cwd=folder, check=True)
    return folder


def near(file: str, folder: Path) -> list[str]:
    """Return the tests that concern a file: of its folder, the recorded figures, those of its package."""
    parts = Path(file).parts[1:-1]
    while not (folder / "tests" / Path(*parts)).is_dir():
        parts = parts[:-1]
    inner, package = str(Path("tests", *parts)), str(Path("tests", parts[0]))
    first = [inner, "tests/project/test_lock.py"]
    return first if inner == package else [*first, package]


def killed_by(mutant: Mutant, folder: Path, limit: int, tests: list[str], options: tuple[str, ...] = ()) -> str:
    """Return the first of some tests that fails on a mutant in a clone, or an empty text if it survives."""
    path = folder / mutant.file
    source = path.read_bytes()
    path.write_bytes(source[: mutant.begin] + mutant.new.encode() + source[mutant.end :])
    try:
        done = subprocess.run(
            [*PYTEST, "-x", *options, *tests],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
            capture_output=True,
            text=True,
            timeout=10 * limit,
        )
    except subprocess.TimeoutExpired:
        return "time"
    finally:
        path.write_bytes(source)
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "" if done.returncode == 0 else (failed or [f"exit {done.returncode}"])[0]


def with_plugin(folder: Path, packages: list[str], *fds: int, **variables: str) -> subprocess.Popen[str]:
    """Start the tests of a map in a clone, with the plugin."""
    paths = os.pathsep.join([str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [*PYTEST, "-p", "tests_of_lines", *(f"tests/{package}" for package in packages), "tests/project/test_lock.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        pass_fds=fds,
    )


def commit(folder: Path) -> str:
    """Return the commit at HEAD."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_map(file: Path, folder: Path, packages: list[str]) -> None:
    """Write the map of the tests of a clone."""
    said, _ = with_plugin(folder, packages, MUTANTS_MAP=str(file)).communicate()
    print(said.strip().splitlines()[-1])
    file.write_text(json.dumps({"commit": commit(folder), **json.loads(file.read_text())}))


def by_map(numbered: dict[int, Mutant], file: Path, folder: Path, packages: list[str], limit: int) -> Iterator[Any]:
    """Yield the number of each mutant and what kills it in a clone, or a text in brackets if nothing does."""
    known = json.loads(file.read_text())
    if subprocess.run(["git", "diff", "--quiet", known["commit"], "HEAD", "--", "simmodel"], cwd=folder).returncode:
        sys.exit(f"{file}: simmodel has changed since the map was made, at {known['commit'][:8]}; make it again")
    reading, writing = os.pipe()
    mutants = [{"number": number, **mutant._asdict()} for number, mutant in numbered.items()]
    todo = folder / "mutants.todo"
    todo.write_text(json.dumps({"mutants": mutants, "out": writing, "limit": limit}))
    process = with_plugin(folder, packages, writing, MUTANTS_MAP=str(file.resolve()), MUTANTS_TODO=str(todo))
    os.close(writing)
    with os.fdopen(reading) as lines:
        for answer in map(json.loads, lines):
            found = answer["by"] if answer["state"] == "killed" else f"({answer['state']})"
            if answer["state"] == "load":
                seconds = dict(zip(known["tests"], known["seconds"], strict=True))
                found = loaded(numbered[answer["number"]], folder, limit, answer["of"], seconds)
            yield answer["number"], found
    said, _ = process.communicate()
    if process.returncode:
        sys.exit(f"the tests of the map ended with status {process.returncode}:\n{said}")


def loaded(mutant: Mutant, folder: Path, limit: int, tests: list[str], seconds: dict[str, float]) -> str:
    """Return what kills a mutant of code that runs while its module loads, of as many tests as the limit allows."""
    spent = accumulate(seconds[test] for test in tests)
    some = [test for test, until in zip(tests, spent, strict=True) if until < limit]
    if not some:
        return "(not run)"
    found = killed_by(mutant, folder, 2 * limit, some)
    if found == "time" or found.startswith("exit -"):
        return "(cut)"
    return found or ("(survived)" if len(some) == len(tests) else "(cut)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", nargs="+", default=["systems", "policies", "resources"])
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=240, help="CPU seconds of the tests of a mutant")
    parser.add_argument("--against", help="a commit, whose tests survivors run too")
    parser.add_argument("--long", action="store_true", help="lost kills run with the long tests as well")
    parser.add_argument("--make-map", type=Path, metavar="FILE", help="write which tests run which lines, and end")
    parser.add_argument("--map", type=Path, metavar="FILE", help="only the tests that run the line of a mutant")
    parser.add_argument("--against-map", type=Path, metavar="FILE", help="the map of the tests of --against")
    options = parser.parse_args()
    if options.make_map and importlib.util.find_spec("coverage") is None:
        parser.error("--make-map: needs the package coverage: pip install coverage")
    if options.map and bool(options.against) != bool(options.against_map):
        parser.error("--map: needs --against-map beside --against")
    with TemporaryDirectory() as top:
        if options.make_map:
            make_map(options.make_map.resolve(), clone(Path(top, "now"), options.against), options.packages)
        else:
            judge(options, Path(top))


def judge(options: argparse.Namespace, top: Path) -> None:
    """Print what kills each mutant."""
    last = options.first + options.number
    mutants = dict(enumerate(drawn(options.packages, options.seed)))
    mutants = {number: mutants[number] for number in range(options.first, min(last, len(mutants)))}
    now = clone(top / "now", None)
    before = clone(top / "before", options.against) if options.against else None
    out = csv.writer(sys.stdout)
    out.writerow(["number", "place", "old", "new", "killed by", "before", "long"])

    def killers(numbered: dict[int, Mutant], folder: Path, file: Path | None) -> Iterator[tuple[int, str]]:
        if file is not None:
            yield from by_map(numbered, file, folder, options.packages, options.limit)
        else:
            for number, mutant in numbered.items():
                yield number, killed_by(mutant, folder, options.limit, near(mutant.file, folder)) or "(survived)"

    def write(number: int, *found: str) -> None:
        mutant = mutants[number]
        old = (ROOT / mutant.file).read_bytes()[mutant.begin : mutant.end].decode()
        out.writerow([number, f"{mutant.file}:{mutant.line}", old[:80], mutant.new[:80], *found])
        sys.stdout.flush()

    survivors = {}
    for number, found in killers(mutants, now, options.map):
        if found.startswith("(") and before is not None:
            survivors[number] = found
        else:
            write(number, found, "", "")
    if before is not None:
        left = {number: mutants[number] for number in survivors}
        for number, was in killers(left, before, options.against_map):
            long = ""
            if not was.startswith("(") and options.long:
                long = killed_by(mutants[number], now, 4 * options.limit, near(mutants[number].file, now), LONG)
            write(number, survivors[number], was, long)


if __name__ == "__main__":
    main()
