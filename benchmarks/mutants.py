"""How many small faults the tests find: faults are drawn, put into a clone one at a time, and the tests near them run.

``python benchmarks/mutants.py --number 60`` draws 60 of the mutants of ``simmodel/systems``, ``policies`` and
``resources`` (``--packages``): a constant one higher or lower, a comparison with its neighbour, ``and`` for ``or``, a
lost ``not``, plus for minus, times for divided by, a statement left out. The same ``--seed`` draws the same ones, and
``--first`` begins later in the list. For each, the tests of its folder, the recorded figures
(``tests/project/test_lock.py``) and the other tests of its package run until one fails. A mutant is killed by a failure
or by using up the CPU time (``--limit``), and survives if all pass.

With ``--against REVISION`` the survivors also run with the tests of another commit: one that these kill is a lost kill.
``--long`` gives lost kills the tests with the marker ``long`` and all examples of Hypothesis, as in CI. Each row of the
printed CSV is one mutant. The checkout is never changed, only clones of its HEAD in a temporary folder.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
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


def killed_by(mutant: Mutant, folder: Path, limit: int, options: tuple[str, ...] = ()) -> str:
    """Return the first test that fails on a mutant in a clone, or an empty text if it survives."""
    path = folder / mutant.file
    source = path.read_bytes()
    path.write_bytes(source[: mutant.begin] + mutant.new.encode() + source[mutant.end :])
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", *options]
    try:
        done = subprocess.run(
            [*command, *near(mutant.file, folder)],
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", nargs="+", default=["systems", "policies", "resources"])
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=240, help="CPU seconds of the tests of a mutant")
    parser.add_argument("--against", help="a commit, whose tests survivors run too")
    parser.add_argument("--long", action="store_true", help="lost kills run with the long tests as well")
    options = parser.parse_args()
    mutants = drawn(options.packages, options.seed)[options.first : options.first + options.number]
    out = csv.writer(sys.stdout)
    out.writerow(["number", "place", "old", "new", "killed by", "before", "long"])
    with TemporaryDirectory() as top:
        now = clone(Path(top, "now"), None)
        before = clone(Path(top, "before"), options.against) if options.against else None
        for number, mutant in enumerate(mutants, options.first):
            old = (ROOT / mutant.file).read_bytes()[mutant.begin : mutant.end].decode()
            found, was, long = killed_by(mutant, now, options.limit), "", ""
            if not found and before is not None:
                was = killed_by(mutant, before, options.limit)
                if was and options.long:
                    long = killed_by(mutant, now, 4 * options.limit, LONG)
            out.writerow([number, f"{mutant.file}:{mutant.line}", old[:80], mutant.new[:80], found, was, long])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
